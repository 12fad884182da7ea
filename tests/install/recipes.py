"""Rows of consume.py: the recipes of packaging/, whose tools are not here. Stand-ins for these do the steps."""
import collections
import ctypes
import fnmatch
import json
import os
import pathlib
import re
import shutil
import sys
import types
import unittest.mock

from kit import *


def recipe(*path):
    return source / "packaging" / pathlib.Path(*path)


@row("quick")
def conan():
    """The recipe exports all that CMake wants, and names what is installed."""
    folder = scratch("conan")
    installed = {each.name for each in stage.rglob("*")}

    def copy(_, pattern, where, to):
        found = [each for each in files_of_tree() if fnmatch.fnmatch(each, pattern)]
        expect(found, f"nothing is {pattern}")
        for each in found:
            target = pathlib.Path(to) / each
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(pathlib.Path(where) / each, target)

    names = {"conan": {"ConanFile": object}, "conan.errors": {"ConanInvalidConfiguration": ValueError},
             "conan.tools": {}, "conan.tools.build": {"check_min_cppstd": lambda *_: None},
             "conan.tools.cmake": dict.fromkeys(["CMake", "CMakeDeps", "CMakeToolchain", "cmake_layout"]),
             "conan.tools.files": {"copy": lambda what, pattern, where, to: copy(what, pattern, pathlib.Path(where).resolve(), to),
                                   "load": lambda _, path: pathlib.Path(path).read_text(),
                                   "rmdir": lambda _, path: None}}
    for name, content in names.items():
        sys.modules[name] = types.ModuleType(name)
        vars(sys.modules[name]).update(content)
    scope = {}
    exec(compile(recipe("conan", "conanfile.py").read_text(), "conanfile.py", "exec"), scope)
    package = scope["UlexiteConan"]()
    package.recipe_folder, package.export_sources_folder = str(recipe("conan")), str(folder / "sources")
    package.set_version()
    expect(package.version == version, f"the version is {package.version}")
    package.export_sources()
    # Without what only tests and examples need, here the headers of libpq.
    configure(folder / "build", *alone, "-DCMAKE_IGNORE_PATH=/usr/include/postgresql", of=folder / "sources")
    parts = collections.defaultdict(unittest.mock.MagicMock)
    package.cpp_info = unittest.mock.MagicMock(components=parts)
    package.package_info()
    wanted = {f"lib{name}.a" for part in parts.values() for name in part.libs}
    shared = cached.get("BUILD_SHARED_LIBS") == "ON"
    libraries = {each.name for each in stage.rglob("lib*.a")} | ({"libulexite.a"} if shared else set())
    expect(wanted == libraries, f"the recipe names {wanted}, installed are {libraries}")
    [module] = [each.args[1] for each in package.cpp_info.set_property.call_args_list if each.args[0] == "cmake_build_modules"]
    expect({os.path.basename(each) for each in module} <= installed, f"not installed: {module}")
    removed = re.search(r"for name in \((.*)\):", recipe("conan", "conanfile.py").read_text().split("def package(")[1])[1]
    expect(set(re.findall(r'"(.*?)"', removed)) <= installed, f"not installed: {removed}")


@row("quick")
def vcpkg():
    """The port's own steps, between stand-ins for the functions of vcpkg."""
    folder = scratch("vcpkg")
    manifest = json.loads(recipe("vcpkg", "ulexite", "vcpkg.json").read_text())
    expect(manifest["version"] == version, f"the version is {manifest['version']}")
    (folder / "port.cmake").write_text(f"""
set(VERSION {version})
set(PORT ulexite)
set(CURRENT_PACKAGES_DIR {folder}/packages)
macro(vcpkg_from_github)
  set(SOURCE_PATH {source})
endmacro()
function(vcpkg_cmake_configure)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" SOURCE_PATH OPTIONS)
  execute_process(COMMAND ${{CMAKE_COMMAND}} -S ${{arg_SOURCE_PATH}} -B {folder}/build -G {generator}
    -DCMAKE_CXX_COMPILER={compiler} ${{arg_OPTIONS}} COMMAND_ERROR_IS_FATAL ANY)
endfunction()
function(vcpkg_cmake_install)
  file(COPY {stage}/ DESTINATION {folder}/packages)
  file(COPY {stage}/ DESTINATION {folder}/packages/debug)
endfunction()
function(vcpkg_cmake_config_fixup)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" CONFIG_PATH "")
  string(REPLACE "lib/" "{place_of_package(stage).relative_to(stage)}/" path ${{arg_CONFIG_PATH}})
  file(RENAME {folder}/packages/${{path}} {folder}/packages/share/ulexite/cmake)
  file(REMOVE_RECURSE {folder}/packages/debug/${{path}})
endfunction()
function(vcpkg_fixup_pkgconfig)
endfunction()
function(vcpkg_install_copyright)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" FILE_LIST)
  file(INSTALL ${{arg_FILE_LIST}} DESTINATION {folder}/packages/share/ulexite)
endfunction()
include({recipe("vcpkg", "ulexite", "portfile.cmake")})
""")
    run("cmake", "-P", folder / "port.cmake")
    made = {each.name for each in (folder / "packages").iterdir()}
    expect(made == {"debug", "include", "lib", "share"}, f"the package has {made}")
    expect({each.name for each in (folder / "packages" / "debug").iterdir()} == {"lib"}, "debug has more than libraries")
    expect({"usage", "LICENSE"} <= {each.name for each in (folder / "packages" / "share" / "ulexite").iterdir()}, "no usage or LICENSE")
    for target in re.findall(r"ulexite::\w+", recipe("vcpkg", "ulexite", "usage").read_text()):
        expect(target in "".join(each.read_text() for each in stage.rglob("ulexite-targets.cmake")), f"no target {target}")


@row("quick")
def xmake():
    """Lua takes the package's file."""
    lua = ctypes.CDLL("liblua5.4.so.0")
    lua.luaL_newstate.restype = ctypes.c_void_p
    lua.lua_tolstring.restype = ctypes.c_char_p
    state = ctypes.c_void_p(lua.luaL_newstate())
    refused = lua.luaL_loadfilex(state, str(recipe("xmake", "xmake.lua")).encode(), None)
    expect(refused == 0, (lua.lua_tolstring(state, -1, None) or b"").decode())
    expect(f'add_versions("{version}", "v{version}")' in recipe("xmake", "xmake.lua").read_text(), "another version")


@row("quick")
def template():
    """The template of packaging, with the installed library."""
    folder = scratch("template")
    configure(folder, f"-DCMAKE_PREFIX_PATH={stage}", of=recipe("template"))
    run("cmake", "--build", folder)
    run(folder / "counter")
    run("ctest", "--test-dir", folder, "--no-tests=error")
    [tag] = re.findall(r"GIT_TAG v([\d.]+)", recipe("template", "CMakeLists.txt").read_text())
    expect(tag == version, f"the template fetches {tag}")
