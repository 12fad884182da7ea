# The tests that need other software, all with the label integration:
#
#   tests/interop, tests/net   those of tests/LAYER/x_test.cpp that are about a client library
#   tests/examples/x.sh, x.py  run as `sh x.sh FOLDER_OF_THE_EXAMPLE_PROGRAMS`
#                              and tools/tls_check on some of these
#   tests/bench/simulation.py  the simulation of the scheduler, if there are benchmarks
#   docs/x.md, README.md       their ```cpp blocks compile, run, and print what the page says
#   tests/c                    four of its programs under valgrind
#   tests/testing, senders     other test frameworks and libraries of senders
#   tests/worlds               examples on the simulated network, as it resets, cuts and delays
#   tests/fuzz/x_fuzz.cpp      a fuzz target; the test runs it on the files of tests/fuzz/corpus/x
#   tests/soak                 a program for tools/soak, and no test
#   tests/gdb                  the script for gdb, on a process and on a core file
#   tests/lldb                 the same for lldb
#   tests/perf                 perf's chains of fibers, and the static probes
#   tests/offcpu               folded stacks of a program that waits
#   tests/install              programs outside the tree that use the library

# ---- client libraries and examples ----
if(ULEXITE_GRPC)
  ulexite_protocol(grpc_notes ${CMAKE_CURRENT_SOURCE_DIR}/interop/grpc_notes.proto)
endif()
ulexite_test_files(integration ${tests})

# ---- examples ----
if(ULEXITE_BUILD_EXAMPLES)
  add_executable(inspector_browser examples/inspector_browser.cpp)  # hangs, for the test of its name
  ulexite_warnings(inspector_browser)
  target_link_libraries(inspector_browser PRIVATE ulexite::ulexite Boost::headers)
  target_compile_options(inspector_browser PRIVATE -g1)
  set_target_properties(inspector_browser PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/examples)
  file(GLOB scripts CONFIGURE_DEPENDS examples/*.sh examples/*.py)
  foreach(program IN ITEMS lisp chat crawler calls)  # those that may be left out
    if(NOT TARGET example_${program})
      list(FILTER scripts EXCLUDE REGEX "/${program}[^/]*$")
    endif()
  endforeach()
  if(NOT nats_FOUND)
    list(FILTER scripts EXCLUDE REGEX "/chat_nats[.]py$")
  endif()
  foreach(script IN LISTS scripts)
    cmake_path(GET script STEM stem)
    set(interpreter sh)
    if(script MATCHES "\\.py$")
      set(interpreter /usr/bin/python3)  # Debian's, which sees Debian's packages; there may be others before it
    endif()
    add_test(NAME examples.${stem} COMMAND ${interpreter} ${script} ${PROJECT_BINARY_DIR}/examples)
    set_tests_properties(examples.${stem} PROPERTIES LABELS integration TIMEOUT 360 ENVIRONMENT "${sanitizer_environment}")
  endforeach()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT ULEXITE_SANITIZE)
    add_test(NAME tls.examples COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/tls_check
      $<TARGET_FILE:example_echo_server> $<TARGET_FILE:example_kv_server> $<TARGET_FILE:example_lua>
      $<TARGET_FILE:example_lisp>)
    set_tests_properties(tls.examples PROPERTIES LABELS integration TIMEOUT 600)
  endif()
endif()

# ---- benchmarks ----
if(TARGET bench_simulation)
  add_test(NAME bench.simulation
    COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/bench/simulation.py $<TARGET_FILE:bench_simulation>)
  set_tests_properties(bench.simulation PROPERTIES LABELS integration TIMEOUT 360 ENVIRONMENT "${sanitizer_environment}")
endif()

# ---- documentation ----
set(extract_snippets ${PROJECT_SOURCE_DIR}/tools/extract_snippets.py)
file(GLOB pages CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/*.md ${PROJECT_SOURCE_DIR}/README.md)
if(NOT boehm_FOUND)
  list(FILTER pages EXCLUDE REGEX embedding-collector)
endif()
if(ULEXITE_SANITIZE)  # as tests/faults
  list(FILTER pages EXCLUDE REGEX "docs/testing[.]md")
endif()
if(Boost_VERSION VERSION_LESS 1.81)  # as interop/asio_fiber
  list(FILTER pages EXCLUDE REGEX "coming-from-asio")
endif()
add_test(NAME docs.quotes
  COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/quotes.py ${PROJECT_SOURCE_DIR}/docs/other-engines.md)
set_tests_properties(docs.quotes PROPERTIES LABELS integration TIMEOUT 60)
foreach(page IN LISTS pages)
  file(STRINGS ${page} snippets REGEX "^```cpp$")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${page})  # the first snippet makes a test
  if(NOT snippets)
    continue()
  endif()
  cmake_path(GET page STEM stem)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/docs/${stem}.cpp)
  add_custom_command(OUTPUT ${source}
    COMMAND ${Python3_EXECUTABLE} ${extract_snippets} generate ${page} ${source}
    DEPENDS ${page} ${extract_snippets})
  set(target docs_${stem})
  add_executable(${target} ${source})
  ulexite_user_options(${target})
  target_compile_options(${target} PRIVATE $<$<STREQUAL:${stem},embedding>:-Wno-old-style-cast>)  # C
  target_link_libraries(${target} PRIVATE ulexite::ulexite $<$<STREQUAL:${stem},testing>:ulexite::faults>)
  if(stem STREQUAL "embedding-collector")
    target_link_libraries(${target} PRIVATE PkgConfig::boehm)
    target_compile_options(${target} PRIVATE -Wno-old-style-cast -Wno-pedantic -Wno-conversion -Wno-cast-qual)
  endif()
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/docs)
  add_test(NAME docs.${stem}
    COMMAND ${Python3_EXECUTABLE} ${extract_snippets} run ${page} $<TARGET_FILE:${target}>)
  set_tests_properties(docs.${stem} PROPERTIES LABELS integration TIMEOUT 360 ENVIRONMENT "${sanitizer_environment}")
endforeach()

# ---- memcheck ----
find_program(ULEXITE_VALGRIND valgrind)
mark_as_advanced(ULEXITE_VALGRIND)
if(ULEXITE_VALGRIND AND NOT ULEXITE_SANITIZE)
  add_executable(memcheck_consume install/main.cpp)
  target_link_libraries(memcheck_consume PRIVATE ulexite::ulexite)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    target_link_options(memcheck_consume PRIVATE LINKER:--strip-debug)  # valgrind 3.19 gives up at clang 19's DWARF 5
  endif()
  add_test(NAME memcheck
    COMMAND ${ULEXITE_VALGRIND} -q --leak-check=no --error-exitcode=9 $<TARGET_FILE:memcheck_consume>)
  set_tests_properties(memcheck PROPERTIES LABELS integration TIMEOUT 120)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    foreach(stem IN ITEMS channels contexts fibers locks)
      add_test(NAME c.memcheck.${stem}
        COMMAND ${ULEXITE_VALGRIND} -q --leak-check=no --error-exitcode=9 --fair-sched=try $<TARGET_FILE:c_${stem}>)
      set_tests_properties(c.memcheck.${stem} PROPERTIES LABELS integration TIMEOUT 360)
    endforeach()
  endif()
endif()

# ---- other test frameworks in runs ----
foreach(framework IN ITEMS catch2/catch.hpp doctest/doctest.h)
  cmake_path(GET framework PARENT_PATH name)
  find_path(ULEXITE_INCLUDE_${name} ${framework})
  mark_as_advanced(ULEXITE_INCLUDE_${name})
  if(NOT ULEXITE_INCLUDE_${name})
    message(WARNING "${framework} was not found: the test of its assertions in runs is left out.")
    continue()
  endif()
  add_executable(testing_${name} testing/${name}.cpp)
  target_include_directories(testing_${name} SYSTEM PRIVATE ${ULEXITE_INCLUDE_${name}})
  ulexite_user_options(testing_${name})
  target_link_libraries(testing_${name} PRIVATE ulexite::testing)
  add_test(NAME frameworks.${name} COMMAND testing_${name})
  set_tests_properties(frameworks.${name} PROPERTIES LABELS integration TIMEOUT 120 ENVIRONMENT "${sanitizer_environment}")
endforeach()

# ---- real libraries of senders ----
# Debian has none. -DULEXITE_INCLUDE_stdexec and -DULEXITE_INCLUDE_beman name the include folders of checkouts.
set(senders_of_stdexec ::stdexec cxx_std_20)
set(senders_of_beman ::beman::execution cxx_std_23)  # with explicit object parameters
foreach(header IN ITEMS stdexec/execution.hpp beman/execution/execution.hpp)
  string(REGEX REPLACE "/.*" "" name ${header})
  find_path(ULEXITE_INCLUDE_${name} ${header})
  mark_as_advanced(ULEXITE_INCLUDE_${name})
  if(NOT ULEXITE_INCLUDE_${name} OR (name STREQUAL "beman" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU"
      AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 14))
    continue()
  endif()
  list(GET senders_of_${name} 0 namespace)
  list(GET senders_of_${name} 1 standard)
  add_executable(senders_${name} senders/real_senders.cpp)
  target_include_directories(senders_${name} SYSTEM PRIVATE ${ULEXITE_INCLUDE_${name}})
  target_compile_features(senders_${name} PRIVATE ${standard})
  target_compile_definitions(senders_${name} PRIVATE ULEXITE_SENDERS=${namespace} $<$<STREQUAL:${name},beman>:BEMAN>)
  target_compile_options(senders_${name} PRIVATE ${ULEXITE_TEST_FLAGS} "SHELL:-include ${header}")
  target_link_libraries(senders_${name} PRIVATE ulexite_test_support GTest::gtest_main)
  add_test(NAME senders.${name} COMMAND senders_${name} --gtest_brief=1)
  set_tests_properties(senders.${name} PROPERTIES LABELS integration TIMEOUT 120 ENVIRONMENT "${sanitizer_environment}")
endforeach()

# ---- examples in simulated worlds ----
if(TARGET example_kv_server AND NOT ULEXITE_SANITIZE)
  # ulexite_world(NAME PART...): worlds/NAME_world.cpp with those parts.
  function(ulexite_world name)
    add_executable(world_${name} worlds/${name}_world.cpp)
    ulexite_user_options(world_${name})
    target_link_libraries(world_${name} PRIVATE ulexite::testing ${ARGN})
    add_test(NAME world.${name} COMMAND world_${name})
    set_tests_properties(world.${name} PROPERTIES LABELS integration TIMEOUT 300)
  endfunction()
  if(TARGET parts_of_chat)
    ulexite_world(chat parts_of_chat)
    target_compile_options(world_chat PRIVATE -O1)  # as its parts
  endif()
  ulexite_world(kv_server parts_of_kv_server)
  ulexite_world(presence parts_of_presence)
  ulexite_world(presence_crowd parts_of_presence)
  add_test(NAME world.presence_crowd_of_100000 COMMAND world_presence_crowd 100000)
  set_tests_properties(world.presence_crowd_of_100000 PROPERTIES LABELS slow TIMEOUT 300)
  ulexite_world(redis_counter parts_of_redis_counter parts_of_kv_server)
  ulexite_world(tcp_proxy parts_of_tcp_proxy)
  ulexite_world(worker_pool parts_of_worker_pool)
endif()

# ---- fuzz targets ----
# With a fuzzer's main in the preset fuzz; elsewhere with one that runs the inputs that are kept.
set(needs_redis_reply PkgConfig::hiredis)
set(needs_http_request parts_of_http_server)
set(needs_http_fields parts_of_http_server)
set(with_fuzzer OFF)
if(ULEXITE_SANITIZE MATCHES "fuzzer")
  set(with_fuzzer ON)
endif()
add_custom_target(fuzz)
file(GLOB programs CONFIGURE_DEPENDS fuzz/*_fuzz.cpp)
foreach(program IN LISTS programs)
  ulexite_stem(${program} "_fuzz" stem)
  if(needs_${stem} AND NOT TARGET ${needs_${stem}})
    continue()
  endif()
  add_executable(${stem}_fuzz ${program} $<$<NOT:$<BOOL:${with_fuzzer}>>:fuzz/replay.cpp>)
  ulexite_user_options(${stem}_fuzz)
  target_link_libraries(${stem}_fuzz PRIVATE ulexite::testing ${needs_${stem}})
  set_target_properties(${stem}_fuzz PROPERTIES UNITY_BUILD OFF RUNTIME_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/fuzz)
  add_dependencies(fuzz ${stem}_fuzz)
  if(with_fuzzer)
    target_link_options(${stem}_fuzz PRIVATE -fsanitize=fuzzer)
  else()
    add_test(NAME fuzz.${stem} COMMAND ${stem}_fuzz ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/corpus/${stem})
    set_tests_properties(fuzz.${stem} PROPERTIES LABELS integration TIMEOUT 120 ENVIRONMENT "${sanitizer_environment}")
  endif()
endforeach()

# ---- soak ----
add_executable(soak soak/soak.cpp)  # run by tools/soak
ulexite_user_options(soak)
target_link_libraries(soak PRIVATE ulexite::ulexite)

if(NOT plain)
  return()
endif()

# ---- gdb ----
add_executable(waiting gdb/waiting.cpp)
target_link_libraries(waiting PRIVATE ulexite::ulexite)
add_test(NAME gdb COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/gdb/gdb_test.py
  $<TARGET_FILE:waiting> ${PROJECT_SOURCE_DIR}/tools/gdb/ulexite.py)
set_tests_properties(gdb PROPERTIES LABELS integration TIMEOUT 300)

# ---- lldb ----
find_program(ULEXITE_LLDB NAMES lldb-19 lldb-16 lldb-14 lldb)
mark_as_advanced(ULEXITE_LLDB)
if(ULEXITE_LLDB)
  add_test(NAME lldb COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/lldb/lldb_test.py
    ${ULEXITE_LLDB} $<TARGET_FILE:waiting> ${PROJECT_SOURCE_DIR}/tools/lldb/ulexite_lldb.py)
  set_tests_properties(lldb PROPERTIES LABELS integration TIMEOUT 300)
else()
  message(WARNING "lldb (Debian: lldb-19) was not found: the test of its script is left out.")
endif()

# ---- perf and static probes ----
find_program(ULEXITE_PERF perf)
mark_as_advanced(ULEXITE_PERF)
if(ULEXITE_PERF)
  add_test(NAME perf COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/perf/perf_test.py $<TARGET_FILE:waiting>)
  set_tests_properties(perf PROPERTIES LABELS integration TIMEOUT 120 SKIP_RETURN_CODE 77)
else()
  message(WARNING "perf (Debian: linux-perf) was not found: the test of its chains is left out.")
endif()
include(CheckIncludeFileCXX)
check_include_file_cxx(sys/sdt.h ULEXITE_HAS_SDT)
if(ULEXITE_HAS_SDT)
  add_test(NAME probes COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/perf/probes_test.py
    $<TARGET_FILE:waiting>)
  set_tests_properties(probes PROPERTIES LABELS integration TIMEOUT 120)
endif()

# ---- where fibers wait, weighed ----
add_test(NAME offcpu COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/offcpu/offcpu_test.py
  $<TARGET_FILE:waiting> ${PROJECT_SOURCE_DIR}/tools/offcpu)
set_tests_properties(offcpu PROPERTIES LABELS integration TIMEOUT 120)

# ---- install ----
# Each quick row of tests/install/consume.py and recipes.py. Those that build the library again are the word `consume` of
# tools/check.
set(stage ${PROJECT_BINARY_DIR}/stage)
add_test(NAME install.stage COMMAND ${CMAKE_COMMAND} --install ${PROJECT_BINARY_DIR} --prefix ${stage})
set_tests_properties(install.stage PROPERTIES LABELS integration TIMEOUT 120 FIXTURES_SETUP ulexite_stage)

set(quick "")
foreach(script IN ITEMS install/consume.py install/recipes.py)
  file(READ ${script} text)
  string(REGEX MATCHALL "@row.\"quick\".\ndef [a-z_]+" found "${text}")
  list(APPEND quick ${found})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${script})
endforeach()
list(TRANSFORM quick REPLACE ".*def " "")
foreach(row IN LISTS quick)
  add_test(NAME install.${row}
    COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/install/consume.py ${PROJECT_BINARY_DIR} ${row})
  # The cost lets the longest start first.
  set_tests_properties(install.${row} PROPERTIES LABELS integration TIMEOUT 900 COST 60 FIXTURES_REQUIRED ulexite_stage)
endforeach()
