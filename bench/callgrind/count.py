#!/usr/bin/env python3
"""Instructions per operation with one worker, by valgrind's callgrind; compared with bench/callgrind/counts.txt.

usage: bench/callgrind/count.py BENCH [--update] [--only WORKLOAD,...] [--jobs JOBS]

BENCH is the bench program of a build with fixed flags (tools/check callgrind makes one). Each workload runs with two
numbers of operations, and the difference is counted: so the start of the program cancels out. Fails if a workload
takes over 5 % more than the file says. --update writes the file.

A locked instruction counts as one here and takes twenty times as long: this finds what became longer, not what became
slower. Counts of another compiler are different ones.
"""
import argparse, concurrent.futures, os, re, subprocess, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
COUNTS = os.path.join(HERE, "counts.txt")
LIMIT = 0.05


def calls_of_fib(n):
    a, b = 0, 1
    for _ in range(n + 1):
        a, b = b, a + b
    return 2 * a - 1


# Workload: its two N; the number of operations is N but for fib.
WORKLOADS = {
    "yield2": (20_000, 220_000),
    "yield1k": (100_000, 300_000),
    "pingpong": (5_000, 55_000),
    "pipe128": (20_000, 220_000),
    "mpmc": (20_000, 220_000),
    "select4": (10_000, 60_000),
    "mutex1": (20_000, 420_000),
    "spawn_join": (20_000, 120_000),
    "spawn_waves": (20_000, 120_000),
    "spawn_wait": (10_000, 60_000),
    "when_all10": (1_000, 11_000),
    "co_pingpong": (5_000, 55_000),
    "co_mixed": (5_000, 55_000),
    "co_spawn_wait": (10_000, 60_000),
    "skynet": (1_000, 100_000),
    "skynet_fj": (1_000, 100_000),
    "fib": (15, 23),
}
OPERATIONS = {"fib": calls_of_fib}


def run(bench, clock, workload, n):
    """The instructions of one run, all threads together."""
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", bench, workload, "1", str(n)]
    env = {**os.environ, "LD_PRELOAD": clock}
    result = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)
    collected = re.search(r"Collected : (\d+)", result.stderr)
    if result.returncode or not collected:
        raise RuntimeError(f"{' '.join(command)}: status {result.returncode}\n{result.stderr}")
    return int(collected[1])


def per_operation(measure, workload):
    few, many = WORKLOADS[workload]
    operations = OPERATIONS.get(workload, int)
    return (measure(workload, many) - measure(workload, few)) / (operations(many) - operations(few))


def read_counts(path):
    with open(path) as file:
        return {name: float(count) for name, count in (line.split() for line in file if not line.startswith("#"))}


def write_counts(path, counts):
    with open(path, "w") as file:
        file.write("# Instructions per operation with one worker: tools/check callgrind. Debian 12's g++, x86-64.\n"
                   "# Written by bench/callgrind/count.py --update.\n")
        for name in WORKLOADS:
            if name in counts:
                file.write(f"{name} {counts[name]:.1f}\n")


def compare(old, new):
    """Lines of a report, and whether nothing grew beyond the limit."""
    lines, good = [], True
    for name, count in new.items():
        line = f"{name:12} {count:10.1f}"
        if name not in old:
            lines.append(line + "  NOT IN counts.txt: write it with --update")
            good = False
            continue
        change = count / old[name] - 1
        line += f"  was {old[name]:10.1f}  {change:+7.1%}"
        if change > LIMIT:
            line += "  GREW"
            good = False
        elif change < -LIMIT:
            line += "  fell: worth an --update"
        lines.append(line)
    return lines, good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--only", default=",".join(WORKLOADS))
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    names = options.only.split(",")
    if unknown := set(names) - set(WORKLOADS):
        parser.error(f"no such workload: {', '.join(unknown)}")
    with tempfile.TemporaryDirectory() as folder:
        clock = os.path.join(folder, "clock.so")
        subprocess.run(["g++", "-std=c++20", "-O2", "-shared", "-fPIC", f"{HERE}/clock.cpp", "-o", clock], check=True)
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            measure = lambda workload, n: run(options.bench, clock, workload, n)
            new = dict(zip(names, pool.map(lambda name: per_operation(measure, name), names)))
    old = read_counts(COUNTS) if os.path.exists(COUNTS) else {}
    lines, good = compare(old, new)
    print("\n".join(lines))
    if options.update:
        write_counts(COUNTS, {**old, **new})
    elif not good:
        sys.exit("callgrind: more than 5 % more instructions than bench/callgrind/counts.txt says. If they are worth "
                 "it: tools/check callgrind with UPDATE=1, and say why in the commit.")


if __name__ == "__main__":
    main()
