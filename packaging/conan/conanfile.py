import os

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load, rmdir

required_conan_version = ">=2.0"

SOURCES = ("CMakeLists.txt", "VERSION", "LICENSE", "ulexite.hpp", "coroutine.hpp", "base/*", "fiber/*", "evloop/*", "runtime/*",
           "sync/*", "net/*", "coroutine/*", "os/*", "interop/*", "testing/*", "cmake/*", "tools/tls_check", "tools/offcpu", "tools/symbol_map",
           "tools/gdb/*", "tools/lldb/*")


class UlexiteConan(ConanFile):
    name = "ulexite"
    license = "Apache-2.0"
    description = "Fibers, channels and sockets for C++20, on all cores"
    topics = ("fibers", "coroutines", "concurrency", "channels", "scheduler", "networking")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "fPIC": [True, False]}
    default_options = {"shared": False, "fPIC": True, "boost/*:without_context": False, "libevent/*:disable_threads": False}

    def set_version(self):
        self.version = load(self, os.path.join(self.recipe_folder, "..", "..", "VERSION")).strip()

    # `conan create packaging/conan` in a clone takes the sources of this tree. An index of recipes has conandata.yml and
    # source() with get() in place of these two.
    def export_sources(self):
        for pattern in SOURCES:
            copy(self, pattern, os.path.join(self.recipe_folder, "..", ".."), self.export_sources_folder)

    def configure(self):
        if self.options.shared:
            self.options.rm_safe("fPIC")

    def layout(self):
        cmake_layout(self)

    def requirements(self):
        self.requires("libevent/[>=2.1.12 <3]")
        self.requires("boost/[>=1.81 <2]")

    def validate(self):
        if self.settings.os != "Linux" or self.settings.arch not in ("x86_64", "armv8"):
            raise ConanInvalidConfiguration("Ulexite runs on Linux on x86_64 and armv8 only")
        check_min_cppstd(self, 20)

    def build_requirements(self):
        self.tool_requires("cmake/[>=3.25]")

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        for part in ("TESTS", "EXAMPLES", "BENCHMARKS"):
            toolchain.cache_variables[f"ULEXITE_BUILD_{part}"] = False
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        CMake(self).install()
        rmdir(self, os.path.join(self.package_folder, "lib", "pkgconfig"))
        # Consumers use Conan's own packages of CMake, but ulexite_check_tls stays.
        for name in ("ulexite-config.cmake", "ulexite-config-version.cmake", "ulexite-targets.cmake", "FindLibevent.cmake"):
            path = os.path.join(self.package_folder, "lib", "cmake", "ulexite", name)
            if os.path.exists(path):
                os.remove(path)

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "ulexite")
        library = self.cpp_info.components["ulexite"]
        library.set_property("cmake_target_name", "ulexite::ulexite")
        library.set_property("pkg_config_name", "ulexite")
        library.libs = ["ulexite"]
        library.cxxflags = ["-fstack-clash-protection"]
        library.system_libs = ["pthread", "dl"]
        library.requires = ["boost::context", "libevent::core", "libevent::pthreads"]
        library.includedirs = ["include", os.path.join("include", "ulexite", "base", "errno")]
        for name, needs in (("testing", "ulexite"), ("faults", "testing"), ("mutex_check", "ulexite"), ("signal_check", "ulexite")):
            part = self.cpp_info.components[name]
            part.set_property("cmake_target_name", f"ulexite::{name}")
            part.libs = [f"ulexite_{name}"]
            part.requires = [needs]
        self.cpp_info.set_property("cmake_build_modules", [os.path.join("lib", "cmake", "ulexite", "ulexite_check_tls.cmake")])
