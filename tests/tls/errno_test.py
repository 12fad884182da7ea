"""errno belongs to the right thread in a function that waits: errno_test.py TLS_CHECK LIBRARY ERRNO_FOLDER INCLUDE_FOLDERS
DEFINITIONS FOLDER COMPILER...

Each compiler builds errno.cpp. With the folder of our errno.h all counts are 0, and tls_check finds nothing. Without it
numbers are read wrongly, and tls_check names errno: so both can fail."""
import pathlib
import shutil
import subprocess
import sys

tls_check, library, errno_folder, include_folders, definitions, folder, *compilers = sys.argv[1:]
source = pathlib.Path(__file__).resolve().parent / "errno.cpp"
flags = [f"-I{each}" for each in include_folders.split(";") if each != errno_folder] + [f"-D{each}" for each in definitions.split(";") if each]
libraries = [library, f"-Wl,-rpath,{pathlib.Path(library).parent}", "-pthread", "-levent_core", "-levent_pthreads"]


def outcome(compiler, level, *cure):
    program = f"{folder}/errno_{pathlib.Path(compiler).name}{level}"
    subprocess.run([compiler, "-std=c++20", level, *cure, *flags, source, *libraries, "-o", program], check=True)
    ran = subprocess.run([program], capture_output=True, text=True, timeout=100)
    found = subprocess.run([sys.executable, tls_check, program], capture_output=True, text=True, timeout=100)
    print(compiler, level, *cure, ran.stdout.strip(), "tls_check", found.returncode, flush=True)
    assert ran.stdout.startswith("accepted "), ran
    return ran.returncode, found.returncode, found.stdout


for compiler in filter(shutil.which, compilers):
    for level in ("-O2", "-O3"):
        ran, found, output = outcome(compiler, level, f"-I{errno_folder}")
        assert ran == 0 and found == 0, output
    ran, found, output = outcome(compiler, "-O2")
    assert ran == 1 and found == 1 and any("lambda" in line and "(errno)" in line for line in output.splitlines()), output
