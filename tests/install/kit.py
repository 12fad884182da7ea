"""What consume.py and recipes.py are written with."""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

here = pathlib.Path(__file__).resolve().parent
source = here.parent.parent
build = pathlib.Path(sys.argv[1]).resolve()
stage = build / "stage"
cached = dict(re.findall(r"^(\w+):\w+=(.*)$", (build / "CMakeCache.txt").read_text(), re.M))
compiler, generator = cached["CMAKE_CXX_COMPILER"], cached["CMAKE_GENERATOR"]
version = cached["CMAKE_PROJECT_VERSION"]
expected_version = f'-DEXPECTED_VERSION="{version}"'
alone = ["-DULEXITE_BUILD_TESTS=OFF", "-DULEXITE_BUILD_EXAMPLES=OFF", "-DULEXITE_BUILD_BENCHMARKS=OFF"]
unity = ["-DCMAKE_UNITY_BUILD=ON", "-DCMAKE_UNITY_BUILD_BATCH_SIZE=0"]
if shutil.which("ccache"):
    unity.append("-DCMAKE_CXX_COMPILER_LAUNCHER=ccache")
rows = {"quick": {}, "long": {}}


def row(kind):
    return lambda function: rows[kind].setdefault(function.__name__, function)


class Failed(Exception): ...


def expect(holds, words):
    if not holds:
        raise Failed(words)


def run(*command, fails=False, environment=None):
    """The output of a command, which must succeed, or fail."""
    command = [str(each) for each in command]
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                          env={**os.environ, "LC_ALL": "C", **(environment or {})}, stdin=subprocess.DEVNULL)
    expect((done.returncode != 0) == fails, f"{shlex.join(command)}\n{done.stdout}\nstatus {done.returncode}")
    return done.stdout


def scratch(name):
    folder = build / "tests" / "install" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def configure(folder, *options, of=here, using=generator, fails=False):
    return run("cmake", "-S", of, "-B", folder, "-G", using, f"-DCMAKE_CXX_COMPILER={compiler}",
               f"-DCMAKE_BUILD_TYPE={cached['CMAKE_BUILD_TYPE']}", *options, fails=fails)


def project(folder, *options, using=generator, programs=("consume", "explore")):
    """Builds the project of this folder, and runs its programs."""
    configure(folder, *options, using=using)
    run("cmake", "--build", folder, *(["--target", *programs] if len(programs) == 1 else []))
    for program in programs:
        run(folder / program)


def one_sentence(output, words):
    """CMake ends with one error, and it has these words."""
    errors = re.split(r"^CMake Error", output, flags=re.M)[1:]
    expect(len(errors) == 1 and words in " ".join(errors[0].split()), f"expected the one error: {words}\nmet {len(errors)}: {output}")


def place_of_package(prefix):
    [file] = prefix.rglob("ulexite.pc")
    return file.parent.parent


def pkg_config(*arguments, prefix=stage):
    environment = {"PKG_CONFIG_PATH": str(place_of_package(prefix) / "pkgconfig")}
    return shlex.split(run("pkg-config", *arguments, "ulexite", environment=environment))


def run_with(program, prefix=stage):  # a shared library is found
    return run(program, environment={"LD_LIBRARY_PATH": str(place_of_package(prefix))})


def files_of_tree():
    """Those of the project as it is now, by their names in it; not what was built. An archive of a version has no git."""
    if (source / ".git").exists():
        names = run("git", "-C", source, "ls-files", "-co", "--exclude-standard").splitlines()
    else:
        names = [str(each.relative_to(source)) for each in source.rglob("*")]
        names = [name for name in names if not name.startswith("build/")]
    return [name for name in names if (source / name).is_file()]


def files_of(prefix):
    return {str(each.relative_to(prefix)) for each in prefix.rglob("*") if each.is_symlink() or not each.is_dir()}
