"""tls_check finds the broken cases and none of the cured ones; what is wrong with a call is told."""
import re
import subprocess
import sys

tool, compiler, source, folder = sys.argv[1:]
found_anywhere = {}
for flags in (["-O2", "-no-pie"], ["-O3", "-fPIC", "-shared"], ["-O1"]):
    built = f"{folder}/tls_cases{''.join(flags)}.so"
    subprocess.run([compiler, *flags, "-g1", "-std=c++20", "-o", built, source], check=True)
    done = subprocess.run([sys.executable, tool, built], capture_output=True, text=True)
    found = set(re.findall(r"^  ([\w:]+)(?:\(.*?\))?: an address", done.stdout, re.M))
    cases = set(re.findall(r"CASE \S+ \*?(broken_\w+|cured_\w+)\(", open(source).read()))
    wrong = {case for case in found if not case.startswith("broken_")}
    # In a program the thread's register is part of each access, so some of these are right there. In a library none is.
    missed = {case for case in cases if case.startswith("broken_")} - found if "-shared" in flags else set()
    if wrong or missed or done.returncode != 1:
        sys.exit(f"{flags}: wrongly found {wrong}, missed {missed}, {done.returncode}\n{done.stdout}{done.stderr}")
    places = re.findall(r"computed at 0x\w+ \(cases.cpp:\d+\), is used at 0x\w+ \(cases.cpp:\d+\)", done.stdout)
    if len(places) != len(re.findall(r": an address", done.stdout)):
        sys.exit(f"{flags}: a finding without its lines\n{done.stdout}")
    named = dict(re.findall(r"^  (\w+)(?:\(.*?\))?: an address of the thread's \((\w+)\)", done.stdout, re.M))
    for case in found:
        wanted = {"broken_loop": "table", "broken_two_names": "table", "broken_errno": "errno", "broken_reference": "seed",
                  "broken_allocator_cache": "thread_cache"}.get(case, "counter")
        if named.get(case) != wanted:
            sys.exit(f"{flags}: {case} is of {wanted}, not of {named.get(case)}\n{done.stdout}")
    print(" ".join(flags), "found", len(found))
done = subprocess.run([sys.executable, tool, "/dev/null"], capture_output=True, text=True)
assert done.returncode != 0 and done.stderr, done
done = subprocess.run([sys.executable, tool], capture_output=True, text=True)
assert done.returncode == 2, done
