# The options of the build, and what they mean for a target of ours.
include(GNUInstallDirs)
foreach(folder IN ITEMS BINDIR LIBDIR INCLUDEDIR DATADIR)  # CMake exports file sets with relative folders only
  if(IS_ABSOLUTE "${CMAKE_INSTALL_${folder}}")
    file(RELATIVE_PATH CMAKE_INSTALL_${folder} "${CMAKE_INSTALL_PREFIX}" "${CMAKE_INSTALL_${folder}}")
  endif()
endforeach()

if(PROJECT_IS_TOP_LEVEL)  # else this option is the other project's
  option(BUILD_SHARED_LIBS "Build a shared library" OFF)
endif()
if(BUILD_SHARED_LIBS)  # the version script decides (layer.cmake), and not a preset of the project around this one
  set(CMAKE_CXX_VISIBILITY_PRESET default)
  set(CMAKE_VISIBILITY_INLINES_HIDDEN OFF)
endif()
option(ULEXITE_INSTALL "Install the library, with the targets of this project" ${PROJECT_IS_TOP_LEVEL})
option(ULEXITE_BUILD_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(ULEXITE_BUILD_EXAMPLES "Build the examples" ${PROJECT_IS_TOP_LEVEL})
option(ULEXITE_BUILD_BENCHMARKS "Build the benchmarks" ${PROJECT_IS_TOP_LEVEL})
option(ULEXITE_WERROR "Warnings are errors" OFF)
option(ULEXITE_CHAOS "Perturb the schedule at marked points (for tests)" OFF)
option(ULEXITE_DEBUG_MIGRATE "Migrate fibers at every opportunity, to find what a thread change breaks (for tests)" OFF)
option(ULEXITE_BOOST_SWITCH "Switch with Boost.Context on x86-64 too (elsewhere it is the only way)" OFF)
# The library with the switch, if that is not the inlined one (fiber/jump.hpp).
set(ulexite_switch_library "")
if(ULEXITE_BOOST_SWITCH OR CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
  set(ulexite_switch_library Boost::context)
endif()
set(ulexite_errno ${PROJECT_SOURCE_DIR}/base/errno)
set(ULEXITE_SANITIZE "" CACHE STRING "Sanitizers for everything built here: address,undefined or thread")
set_property(CACHE ULEXITE_SANITIZE PROPERTY STRINGS "" "address,undefined" "thread")
set(ULEXITE_TEST_FLAGS "" CACHE STRING "What tests, examples, benchmarks and snippets are compiled with beyond the library's flags")
set(ULEXITE_TESTS_A_FILE 12 CACHE STRING "How many test files are compiled as one; 1 for the quickest turn after an edit")
set(ULEXITE_LINKER "" CACHE STRING "The linker of the programs built here, if it is installed: mold is four times as fast")
set(ULEXITE_STRESS_SECONDS 5 CACHE STRING "How long ctest runs each stress program")

if(PROJECT_IS_TOP_LEVEL)
  get_property(multi_config GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
  if(NOT multi_config AND NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Debug, Release, RelWithDebInfo or MinSizeRel" FORCE)
  endif()
  if(NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
    find_program(ULEXITE_CCACHE ccache)
    mark_as_advanced(ULEXITE_CCACHE)
    if(ULEXITE_CCACHE)  # the sloppiness is what lets ccache work with precompiled headers
      set(CMAKE_CXX_COMPILER_LAUNCHER
        ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${ULEXITE_CCACHE})
    endif()
  endif()
endif()

if(ULEXITE_LINKER)
  unset(ULEXITE_LINKER_PROGRAM CACHE)
  find_program(ULEXITE_LINKER_PROGRAM ${ULEXITE_LINKER})
  mark_as_advanced(ULEXITE_LINKER_PROGRAM)
  if(ULEXITE_LINKER_PROGRAM)
    add_link_options(-fuse-ld=${ULEXITE_LINKER})
  endif()
endif()

if(ULEXITE_SANITIZE)
  add_compile_options(-fsanitize=${ULEXITE_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${ULEXITE_SANITIZE})
  if(ULEXITE_SANITIZE MATCHES "undefined")
    # vptr opens a pipe to see whether an object can be read, on any thread and at any time. It would disturb tests that
    # count descriptors, and report a wrong object when no descriptor is left.
    add_compile_options(-fno-sanitize-recover=undefined -fno-sanitize=vptr)
  endif()
endif()

# Definitions that change the headers. All code that includes these must agree, so they are public.
set(ulexite_definitions "")
foreach(option IN ITEMS ULEXITE_CHAOS ULEXITE_DEBUG_MIGRATE ULEXITE_BOOST_SWITCH)
  if(${option})
    list(APPEND ulexite_definitions ${option}=1)
  endif()
endforeach()

# ulexite_find(<package> [<argument of find_package>...] DEBIAN <name> [OR <words>]): as find_package(REQUIRED), but what is
# missing is one sentence: the package, its name in Debian, and how to do without it. A macro, because find_package sets
# variables.
macro(ulexite_find package)
  cmake_parse_arguments(ulexite_find "" "DEBIAN;OR" "" ${ARGN})
  find_package(${package} ${ulexite_find_UNPARSED_ARGUMENTS} QUIET)
  if(NOT ${package}_FOUND)
    list(JOIN ulexite_find_UNPARSED_ARGUMENTS " " ulexite_find_words)
    message(FATAL_ERROR "${package} (${ulexite_find_words}) was not found: install it "
      "(Debian: ${ulexite_find_DEBIAN})${ulexite_find_OR}.")
  endif()
endmacro()

# Warnings for code of ours. Users of the library never get them.
function(ulexite_warnings target)
  target_compile_options(${target} PRIVATE
    # g++'s full -Wshadow also warns about a parameter with the name of a type or a member function; clang's does not.
    $<IF:$<CXX_COMPILER_ID:GNU>,-Wshadow=local,-Wshadow>
    -Wall -Wextra -Wpedantic -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor -Wold-style-cast
    -Wcast-qual -Wundef
    # These misfire in g++ 12's own std::string (GCC bugs 105329 and 105651 and their like).
    $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict;-Wno-array-bounds;-Wno-stringop-overflow;-Wno-stringop-overread>
    # In a unity build g++ takes each source for a header, and warns of its unnamed namespace.
    $<$<AND:$<CXX_COMPILER_ID:GNU>,$<BOOL:${CMAKE_UNITY_BUILD}>>:-Wno-subobject-linkage>
    $<$<BOOL:${ULEXITE_WERROR}>:-Werror>)
endfunction()

# The flags of each layer.
function(ulexite_common_options target)
  ulexite_warnings(${target})
  target_compile_definitions(${target} PUBLIC ${ulexite_definitions})
  target_link_libraries(${target} PUBLIC Threads::Threads)
endfunction()

# The flags of a program that uses the library: an example, a snippet, a benchmark. Precompiled headers were tried: to
# load them took g++ as long as the headers themselves.
function(ulexite_user_options target)
  ulexite_warnings(${target})
  target_compile_options(${target} PRIVATE ${ULEXITE_TEST_FLAGS})
endfunction()
