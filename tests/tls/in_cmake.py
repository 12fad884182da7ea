"""ulexite_check_tls lets a build fail when a target keeps a thread's address over a wait, and lets the cured one pass."""
import shutil
import subprocess
import sys

cmake, function, project, folder, compiler = sys.argv[1:]


def run(*command):
    return subprocess.run([cmake, *command], capture_output=True, text=True)


shutil.rmtree(folder, ignore_errors=True)  # of an earlier run: nothing would be built, and nothing checked
made = run("-S", project, "-B", folder, "-G", "Ninja", f"-DCHECK_TLS={function}", f"-DCMAKE_CXX_COMPILER={compiler}")
assert made.returncode == 0, made.stdout + made.stderr
cured = run("--build", folder, "--target", "cured")
assert cured.returncode == 0 and "0 findings" in cured.stdout, cured.stdout + cured.stderr
for _ in range(2):  # a target that has failed is not taken for built
    broken = run("--build", folder, "--target", "broken")
    said = broken.stdout + broken.stderr
    assert broken.returncode != 0 and "count: an address of the thread's" in said and "waits_for_something" in said, said
print("as wanted")
