#!/usr/bin/env python3
"""consume.py BUILD ROW...: uses the library from outside, in every way that docs/installing.md names.

BUILD is a build of the library; BUILD/stage is where it is installed. A ROW is the name of a function below, or in
recipes.py; `quick` stands for those that are tests of ctest, and `long` for those that build the library again.
"""
import json
import os
import pathlib
import platform
import re
import shlex
import shutil
import sys
import time

from kit import *
import recipes


# ---- the installed library ----
@row("quick")
def find_package():
    project(scratch("find_package"), f"-DCMAKE_PREFIX_PATH={stage}", programs=["consume"])


@row("quick")
def other_versions():
    """A project that asks for an earlier or a later second number finds no package; one that asks for this one does."""
    major, minor, _ = map(int, version.split("."))
    for asked in f"{major}.{minor}", version, f"{major}.{minor - 1}", f"{major}.{minor + 1}":
        folder = scratch("other_versions")
        (folder / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.25)\nproject(asks LANGUAGES CXX)\n"
                                               f"find_package(ulexite {asked} CONFIG REQUIRED)\n")
        refused = not version.startswith(asked)
        output = configure(folder / "build", f"-DCMAKE_PREFIX_PATH={stage}", of=folder, fails=refused)
        if refused:
            one_sentence(output, f'compatible with requested version "{asked}"')


@row("quick")
def no_components():
    """A project that asks for a component is told that there are none; one for which it is optional finds the package."""
    for asked in "COMPONENTS", "OPTIONAL_COMPONENTS":
        folder = scratch("no_components")
        (folder / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.25)\nproject(asks LANGUAGES CXX)\n"
                                               f"find_package(ulexite CONFIG REQUIRED {asked} testing)\n")
        refused = asked == "COMPONENTS"
        output = configure(folder / "build", f"-DCMAKE_PREFIX_PATH={stage}", of=folder, fails=refused)
        if refused:
            one_sentence(output, "ulexite has no components, but testing was asked for: link the target, as ulexite::testing")


@row("quick")
def makefiles():
    """A machine without Ninja."""
    project(scratch("makefiles"), f"-DCMAKE_PREFIX_PATH={stage}", using="Unix Makefiles", programs=["explore"])


@row("quick")
def c_alone():
    """A project in C alone hears that the package needs C++."""
    output = run("cmake", f"-DCMAKE_PREFIX_PATH={stage}", "-G", generator, "-S", here / "c_alone", "-B", scratch("c_alone"),
                 fails=True)
    one_sentence(output, "needs C++ too: project(NAME LANGUAGES C CXX)")


@row("quick")
def pkg_config_flags(prefix=stage):
    """The headers compile with the warnings that strict projects turn into errors; C as docs/embedding.md says."""
    folder = scratch("pkg_config")
    expect(pkg_config("--modversion", prefix=prefix) == [version], "pkg-config names another version")
    flags = pkg_config("--cflags", prefix=prefix)
    for variable, flag in ("stack_protection", "-fstack-clash-protection"), ("errno", "base/errno"):
        expect(any(flag in each for each in flags), f"no {flag} in {flags}")
        without = pkg_config("--cflags", f"--define-variable={variable}=", prefix=prefix)
        expect(not any(flag in each for each in without), f"{flag} cannot be left out")
    strict = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    run(compiler, "-std=c++20", *strict, "-Wshadow", "-Wconversion", "-Wsign-conversion", "-Wold-style-cast", expected_version,
        *flags, "-c", here / "main.cpp", "-o", folder / "main.o")
    shared = not list(prefix.rglob("libulexite.a"))
    for of_link, of_pkg_config in [([], [])] if shared else [([], []), ([], ["--static"]), (["-static"], ["--static"])]:
        run(compiler, *of_link, folder / "main.o", *pkg_config("--libs", *of_pkg_config, prefix=prefix), "-o", folder / "consume")
        run_with(folder / "consume", prefix)
    run("gcc", "-std=c11", "-D_GNU_SOURCE", *strict, *flags, here.parent / "c" / "fibers.c", "-o", folder / "fibers",
        *pkg_config("--libs", prefix=prefix), "-lstdc++")
    run_with(folder / "fibers", prefix)


@row("quick")
def flags():
    """A program that is compiled otherwise than the library."""
    folder = scratch("flags")
    program = folder / "program"
    linker = ["-flto"] if "clang" not in compiler else []  # clang's needs a linker that may not be here
    (folder / "state.cpp").write_text("#include <ulexite.hpp>\nulexite::fiber_local<int> own;\n"
                                      "bool set(ulexite::event& by, ulexite::channel<int>& log) { return by.set(), log.close(); }\n")
    run(compiler, "-std=c++20", "-fvisibility=hidden", "-c", folder / "state.cpp", *pkg_config("--cflags"), "-o", folder / "state.o")
    variables = re.findall(r"OBJECT +\w+ +(\w+) +\w+ (\S*(?:controlled_somewhere|next_local_key)\S*)", run("readelf", "-sW", folder / "state.o"))
    expect(len(variables) >= 2 and {each for each, _ in variables} == {"DEFAULT"}, f"not shared with the library: {variables}")
    run(compiler, "-std=c++23", "-fno-rtti", "-fvisibility=hidden", "-O1", *linker, expected_version, here / "main.cpp",
        *pkg_config("--cflags", "--libs"), "-o", program)
    run_with(program)


@row("quick")
def meson():
    meson_project(scratch("meson"), environment={"PKG_CONFIG_PATH": str(place_of_package(stage) / "pkgconfig")})


def meson_project(folder, *options, environment=None):
    (folder / "meson.build").write_text("""project('consume', 'cpp', default_options: ['cpp_std=c++20'])
ulexite = dependency('ulexite')
executable('consume', 'main.cpp', dependencies: ulexite,
  cpp_args: '-DEXPECTED_VERSION="@0@"'.format(ulexite.version()))
""")
    shutil.copy(here / "main.cpp", folder)
    run("meson", "setup", *options, folder / "build", folder, environment={"CXX": compiler, **(environment or {})})
    run("ninja", "-C", folder / "build")
    run(folder / "build" / "consume")


@row("quick")
def sandbox():
    """As an online compiler runs it. Without a thread it ends with a sentence, and not later."""
    program = scratch("sandbox") / "sandbox"
    run(compiler, "-std=c++20", here / "sandbox.cpp", *pkg_config("--cflags", "--libs"), "-o", program)
    place = {"LD_LIBRARY_PATH": str(place_of_package(stage))}
    if "no sandbox" in run("sh", "-c", f"{program} new_calls || true", environment=place):
        return print("sandbox: no seccomp here")
    for words in ["new_calls"], ["new_calls", "timerfd", "eventfd"], ["new_calls", "timerfd", "eventfd", "one_thread"]:
        output = run(program, *words, environment=place)
        expect("the sum is 5050" in output, f"without {words}: {output}")
    output = run(program, "threads", fails=True, environment=place)
    expect(output.startswith("refused: ulexite: the first worker thread: "), f"threads: {output}")


@row("quick")
def offcpu():
    """The installed tool reads the dump of a program that uses the package."""
    folder = scratch("offcpu")
    (folder / "waiting.cpp").write_text("""#include <ulexite.hpp>
#include <iostream>
#include <sstream>
int main() {
  ulexite::runtime rt;
  rt.run([&] {
    ulexite::event end;
    auto fiber = ulexite::spawn([&] { end.wait(); });
    std::ostringstream dump;
    for (; dump.str().find("for event") == std::string::npos; ulexite::this_fiber::yield()) dump.str(""), rt.dump_json(dump);
    std::cout << dump.str();
    end.set();
    fiber.join();
  });
}
""")
    run(compiler, "-std=c++20", folder / "waiting.cpp", *pkg_config("--cflags", "--libs"), "-o", folder / "waiting")
    (folder / "dump.json").write_text(run_with(folder / "waiting"))
    folded = run(stage / "bin" / "ulexite-offcpu", "--count", folder / "dump.json")
    expect(re.fullmatch(r"spawned at .*waiting\.cpp:8 in main.*;for event 1\n", folded), f"not folded: {folded}")


# ---- what is refused ----
@row("quick")
def refused_at_link():
    """A program that is built otherwise than the library does not link, and the linker says why."""
    folder = scratch("refused_at_link")
    program = folder / "program.cpp"
    program.write_text("#include <ulexite.hpp>\nint main() {}\n")
    for flag, words in {"-D_GLIBCXX_DEBUG": "with_GLIBCXX_DEBUG", "-fsanitize=address": "with_address_sanitizer",
                        "-fsanitize=thread": "with_thread_sanitizer"}.items():
        output = run(compiler, "-std=c++20", flag, program, *pkg_config("--cflags", "--libs"), "-o", folder / "program", fails=True)
        expect(re.search(rf"undefined.*ulexite_is_built_\w*{words}", output), f"the linker does not name {words}: {output}")


@row("quick")
def old_compilers():
    """One sentence of the headers, and one of the build. The old compilers are today's under another number."""
    folder = scratch("old_compilers")
    words = "Ulexite needs g++ 12 or later, or clang 16 or later (Debian: g++, clang-19)"
    for name, macro, number in ("g++", "__GNUC__", 11), ("clang++-19", "__clang_major__", 15):
        if not shutil.which(name):
            print(f"old_compilers: no {name} here")
            continue
        old = folder / f"old-{name}"
        old.write_text(f'#!/bin/sh\nexec {name} -U{macro} -D{macro}={number} "$@"\n')
        old.chmod(0o755)
        headers_say(words, old)
        output = run("cmake", "-S", source, "-B", folder / name, "-G", generator, f"-DCMAKE_CXX_COMPILER={old}", *alone, fails=True)
        one_sentence(output, f"{words}; {old} is")
    if platform.machine() == "x86_64":
        headers_say("Ulexite runs on x86-64 and aarch64 only, in programs of 64 bits", compiler, "-m32")


def headers_say(words, *command):
    text = scratch("headers") / "program.cpp"
    text.write_text("#include <ulexite.hpp>\n")
    output = run(*command, "-std=c++20", "-fsyntax-only", *pkg_config("--cflags"), text, fails=True)
    errors = re.findall(r"error: (.*)", output)
    expect(len(errors) == 2 and words in errors[0], f"expected: {words}\nmet: {output}")


@row("quick")
def missing():
    """What is missing is one sentence that names the package to install."""
    folder = scratch("missing")
    root = f"-DCMAKE_FIND_ROOT_PATH={folder}/nothing"
    packages, libraries = "-DCMAKE_FIND_ROOT_PATH_MODE_PACKAGE=", "-DCMAKE_FIND_ROOT_PATH_MODE_LIBRARY="
    output = configure(folder / "source", *alone, root, packages + "ONLY", of=source, fails=True)
    one_sentence(output, "Boost (1.70 CONFIG COMPONENTS context) was not found: install it (Debian: libboost-context-dev).")
    output = configure(folder / "source", packages + "BOTH", libraries + "ONLY", of=source, fails=True)
    one_sentence(output, "Libevent (2.1) was not found: install it (Debian: libevent-dev).")
    output = configure(folder / "source", libraries + "BOTH", "-DULEXITE_BUILD_TESTS=ON",
                       "-DCMAKE_DISABLE_FIND_PACKAGE_GTest=ON", of=source, fails=True)
    one_sentence(output, "install it (Debian: libgtest-dev), or leave the tests out (-DULEXITE_BUILD_TESTS=OFF).")
    output = configure(folder / "processor", *alone, "-DCMAKE_SYSTEM_NAME=Linux", "-DCMAKE_SYSTEM_PROCESSOR=riscv64", of=source,
                       fails=True)
    one_sentence(output, "Ulexite runs on x86-64 and aarch64 only, in programs of 64 bits. This build is for riscv64")
    package = place_of_package(stage) / "cmake" / "ulexite"
    script = folder / "old.cmake"
    script.write_text(f"set(CMAKE_VERSION 3.22.1)\ninclude({package}/ulexite-config.cmake)\n")
    one_sentence(run("cmake", "-P", script, fails=True), "ulexite needs CMake 3.23 or later, which knows file sets; this is 3.22.1")
    if cached.get("BUILD_SHARED_LIBS") != "ON":
        output = configure(folder / "package", root, libraries + "ONLY", f"-Dulexite_DIR={package}", fails=True)
        one_sentence(output, "ulexite needs libevent 2.1 (Debian: libevent-dev)")
        output = run("pkg-config", "--libs", "ulexite", fails=True,
                     environment={"PKG_CONFIG_LIBDIR": str(place_of_package(stage) / "pkgconfig")})
        expect("libevent_core" in output, f"pkg-config does not name libevent_core: {output}")


@row("quick")
def no_shadow_stack():
    """No object of the switch claims a shadow stack, even if the compiler is told to make it claim one."""
    folder = scratch("no_shadow_stack")
    if platform.machine() != "x86_64":
        return print("no_shadow_stack: there are none here")
    (folder / "control.cpp").write_text("int main() {}\n")
    run(compiler, "-fcf-protection=full", "-c", folder / "control.cpp", "-o", folder / "control.o")
    expect("SHSTK" in run("readelf", "-n", folder / "control.o"), "-fcf-protection=full does nothing here")
    commands = json.loads((build / "compile_commands.json").read_text())
    commands = [shlex.split(each["command"]) for each in commands if "/ulexite_fiber.dir/" in each["command"]]
    expect(commands, "no compilation of ulexite_fiber in compile_commands.json")
    for number, command in enumerate(commands):
        first = [os.path.basename(each) for each in command].index(os.path.basename(compiler))
        out = command.index("-o") + 1
        command[out] = str(folder / f"{number}.o")
        run(*command[first:first + 1], "-fcf-protection=full", *command[first + 1:])
        expect("SHSTK" not in run("readelf", "-n", command[out]), f"{command[-1]} claims a shadow stack")


# ---- as a part of another project ----
def project_around_library(name, *options):
    """The user's project builds what it links, and installs nothing of the library."""
    folder = scratch(name)
    project(folder / "build", *unity, *options)
    cache = (folder / "build" / "CMakeCache.txt").read_text()
    expect(not re.search(r"^BUILD_SHARED_LIBS:BOOL", cache, re.M), "the library has put BUILD_SHARED_LIBS into the cache")
    libraries = {each.name for each in (folder / "build").rglob("libulexite*") if each.suffix in (".a", ".so")}
    expect(libraries == {"libulexite.a", "libulexite_testing.a"}, f"built: {libraries}")
    run("cmake", "--install", folder / "build", "--prefix", folder / "prefix")
    expect(not files_of(folder / "prefix"), f"installed: {files_of(folder / 'prefix')}")


@row("long")
def add_subdirectory():
    project_around_library("add_subdirectory", f"-DULEXITE_SOURCE_DIR={source}")


@row("long")
def fetch_content():
    project_around_library("fetch_content", f"-DULEXITE_REPOSITORY=file://{repository()}")


@row("long")
def meson_subproject():
    """Static, and then shared; by the wrap file of packaging."""
    folder = scratch("meson_subproject")
    (folder / "subprojects").mkdir()
    wrap = (source / "packaging" / "meson" / "ulexite.wrap").read_text()
    (folder / "subprojects" / "ulexite.wrap").write_text(re.sub(r"(?<=^url = ).*", f"file://{repository()}", wrap, flags=re.M))
    meson_project(folder, "-Dunity=subprojects", "-Dunity_size=1000")
    expect(list((folder / "build").rglob("libulexite.a")), "no static library")
    run("meson", "configure", folder / "build", "-Dulexite:default_library=shared")
    run("ninja", "-C", folder / "build")
    expect("libulexite.so" in run("readelf", "-d", folder / "build" / "consume"), "no shared library")
    run(folder / "build" / "consume")


def repository():
    """A repository with the files of this tree as they are now, and the tags v0 and that of the version."""
    folder = build / "tests" / "install" / "repository"
    shutil.rmtree(folder, ignore_errors=True)
    for name in files_of_tree():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source / name, folder / name)
    git = ["git", "-C", folder, "-c", "user.name=test", "-c", "user.email=test@example.org"]
    for command in ["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "all"], ["tag", "v0"], ["tag", f"v{version}"]:
        run(*git, *command)
    return folder


# ---- the install itself ----
@row("quick")
def components():
    installs_in_parts(build, scratch("components"))


def installs_in_parts(built, folder, shared=cached.get("BUILD_SHARED_LIBS") == "ON"):
    """The components are parts of the whole, and the words of docs/installing.md remove all."""
    parts = []
    for component in "runtime", "development", "scripts":
        run("cmake", "--install", built, "--prefix", folder / component, "--component", component)
        parts.append(files_of(folder / component))
    run("cmake", "--install", built, "--prefix", folder / "whole")
    whole = files_of(folder / "whole")
    expect(set.union(*parts) == whole, f"in no component: {whole - set.union(*parts)}")
    expect(sum(map(len, parts)) == len(whole), "a file is in two components")
    expect(sorted(map(os.path.basename, parts[0])) == ([f"libulexite.so.{version.rpartition('.')[0]}", f"libulexite.so.{version}"]
                                                       if shared else []), f"component runtime: {parts[0]}")
    expect(all(re.search("gdb|lldb|bin/ulexite-offcpu", each) for each in parts[2]) and len(parts[2]) >= 3, f"component scripts: {parts[2]}")
    # A link into the source tree would do until that is moved.
    links = [each for each in (folder / "whole").rglob("*") if each.is_symlink() and not each.resolve().is_relative_to(folder)]
    expect(not links, f"links that lead out: {links}")
    [words] = re.findall(r"To remove what was installed: `(.*)`", (source / "docs" / "installing.md").read_text())
    run("sh", "-ec", words.replace("build/release/install_manifest.txt", shlex.quote(f"{built}/install_manifest.txt")))
    expect(not files_of(folder / "whole"), f"not removed: {files_of(folder / 'whole')}")


@row("quick")
def gdb_link():
    """gdb loads the script through a link."""
    link = scratch("gdb_link") / "libulexite-gdb.py"
    link.symlink_to(next(stage.rglob("gdb/ulexite.py")))
    output = run("gdb", "-q", "-nx", "-batch", "-ex", f"source {link}", "-ex", "info fibers", "/bin/true", fails=True)
    expect("no ulexite in this program" in output, output)


@row("long")
def shared():
    """A shared library: its users need neither libevent nor a word more, and gdb loads the script by itself."""
    folder = scratch("shared")
    prefix = folder / "prefix"
    configure(folder / "library", *alone, *unity, "-DBUILD_SHARED_LIBS=ON", f"-DCMAKE_INSTALL_PREFIX={prefix}", of=source)
    run("cmake", "--build", folder / "library")
    installs_in_parts(folder / "library", folder, shared=True)
    run("cmake", "--install", folder / "library")
    configure(folder / "project", f"-Dulexite_DIR={place_of_package(prefix)}/cmake/ulexite",
              f"-DCMAKE_FIND_ROOT_PATH={folder}/nothing", "-DCMAKE_FIND_ROOT_PATH_MODE_LIBRARY=ONLY")
    run("cmake", "--build", folder / "project")
    for program in "consume", "explore":
        run(folder / "project" / program)
    exports(folder / "library", prefix, folder)
    expect("event" not in " ".join(pkg_config("--libs", prefix=prefix)), "pkg-config names libevent")
    pkg_config_flags(prefix)
    known = [word for kind in ("safe-path", "scripts-directory")
             for word in ("-iex", f"add-auto-load-{kind} {prefix}/share/gdb/auto-load")]
    output = run("gdb", "-q", "-nx", "-batch", *known, "-ex", "break main", "-ex", "run", "-ex", "info fibers",
                 folder / "project" / "consume")
    expect("Undefined info command" not in output and "fibers" in output, f"gdb has not loaded the script: {output}")


def exports(library, prefix, folder):
    """The shared library keeps what is its own, and what the libraries for tests need is there."""
    place = place_of_package(prefix)
    exported = set(re.findall(r" (\w+)(?:@|$)", run("nm", "-D", "--defined-only", place / "libulexite.so"), re.M))
    inner = set(re.findall(r"^    (\w+);$", (library / "symbols.map").read_text(), re.M))
    expect(len(inner) > 100 and inner.isdisjoint(exported), f"{len(inner)} are local, exported are {inner & exported}")
    run(sys.executable, here.parent / "c" / "symbols.py", source / "interop" / "ulexite.h", place / "libulexite.so",
        here.parent / "c" / "symbols.txt")
    tests = [place / f"libulexite_{each}.a" for each in ("testing", "faults", "mutex_check", "signal_check")]
    run(compiler, here / "main.cpp", "-std=c++20", expected_version, "-Wl,--whole-archive", *tests, "-Wl,--no-whole-archive",
        *pkg_config("--cflags", "--libs", prefix=prefix), "-ldl", "-o", folder / "with_libraries_for_tests")
    run_with(folder / "with_libraries_for_tests", prefix)


@row("long")
def boost_switch():
    """The package of a library that switches with Boost.Context brings it, and says so where it is missing. The folders
    of its install are absolute."""
    folder = scratch("boost_switch")
    prefix = folder / "prefix"
    configure(folder / "library", *alone, *unity, "-DULEXITE_BOOST_SWITCH=ON", f"-DCMAKE_INSTALL_INCLUDEDIR={folder}/headers",
              f"-DCMAKE_INSTALL_LIBDIR={prefix}/lib", f"-DCMAKE_INSTALL_PREFIX={prefix}", of=source)
    run("cmake", "--build", folder / "library")
    run("cmake", "--install", folder / "library")
    project(folder / "project", f"-DCMAKE_PREFIX_PATH={prefix}")
    pkg_config_flags(prefix)
    output = configure(folder / "missing", f"-Dulexite_DIR={place_of_package(prefix)}/cmake/ulexite",
                       f"-DCMAKE_FIND_ROOT_PATH={folder}/nothing", "-DCMAKE_FIND_ROOT_PATH_MODE_PACKAGE=ONLY", fails=True)
    one_sentence(output, "ulexite needs Boost.Context 1.70 (Debian: libboost-context-dev)")


@row("long")
def lto():
    """The whole with link-time optimization, in a project that installs the library with itself (ULEXITE_INSTALL)."""
    folder = scratch("lto")
    optimized = ["-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_INTERPROCEDURAL_OPTIMIZATION=ON"]
    project(folder / "build", *unity, *optimized, f"-DULEXITE_SOURCE_DIR={source}", "-DULEXITE_INSTALL=ON")
    run("cmake", "--install", folder / "build", "--prefix", folder / "prefix")
    project(folder / "project", *optimized, f"-DCMAKE_PREFIX_PATH={folder}/prefix")


failed = []
for name in [each for argument in sys.argv[2:] for each in rows.get(argument, [argument])]:
    start = time.monotonic()
    try:
        {**rows["quick"], **rows["long"]}[name]()
        result = "passed"
    except Failed as failure:
        print(failure)
        result = "FAILED"
        failed.append(name)
    print(f"{name}: {result}, {time.monotonic() - start:.1f} s", flush=True)
sys.exit(f"failed: {' '.join(failed)}" if failed else 0)
