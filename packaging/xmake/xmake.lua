-- A package for xmake: add_repositories with this file as packages/u/ulexite/xmake.lua, then add_requires("ulexite").
package("ulexite")
    set_description("Fibers, channels and sockets for C++20, on all cores")
    set_license("Apache-2.0")
    add_urls("https://example.org/ulexite.git")
    add_versions("0.1.0", "v0.1.0")

    add_deps("cmake >=3.25")
    add_deps("libevent", {configs = {openssl = false}})
    add_deps("boost >=1.81", {configs = {context = true}})
    add_links("ulexite")
    add_syslinks("pthread", "dl")
    add_includedirs("include", "include/ulexite/base/errno")
    add_cxxflags("-fstack-clash-protection")

    on_install("linux|x86_64", "linux|arm64", function (package)
        import("package.tools.cmake").install(package, {
            "-DCMAKE_BUILD_TYPE=" .. (package:is_debug() and "Debug" or "Release"),
            "-DBUILD_SHARED_LIBS=" .. (package:config("shared") and "ON" or "OFF"),
            "-DULEXITE_BUILD_TESTS=OFF",
            "-DULEXITE_BUILD_EXAMPLES=OFF",
            "-DULEXITE_BUILD_BENCHMARKS=OFF"
        })
    end)

    on_test(function (package)
        assert(package:check_cxxsnippets({test = [[
            #include <ulexite.hpp>
            void test() { ulexite::run([] { ulexite::spawn([] {}).join(); }); }
        ]]}, {configs = {languages = "c++20"}}))
    end)
