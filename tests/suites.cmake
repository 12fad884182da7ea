# For ctest, which includes it with `program`, `emulator`, `layer` and `label` set: each suite of a GoogleTest program is
# a test. A process for each single test would take more time to start than most of them take to run.
if(NOT EXISTS ${program})
  cmake_path(GET program FILENAME name)
  add_test(${layer}.${name}_NOT_BUILT ${name}_NOT_BUILT)
  set_tests_properties(${layer}.${name}_NOT_BUILT PROPERTIES LABELS ${label})
  return()
endif()
execute_process(COMMAND ${emulator} ${program} --gtest_list_tests OUTPUT_VARIABLE lines TIMEOUT 60 COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "\n[^ \n]+[.]" suites "\n${lines}")  # gtest_main's first line has spaces
foreach(suite IN LISTS suites)
  string(REGEX REPLACE "[\n.]" "" suite ${suite})
  set(name ${layer}.${suite})
  set(label_of_suite ${label})
  if(suite MATCHES "Slow$")
    set(label_of_suite slow)
  endif()
  add_test(${name} ${emulator} ${program} --gtest_brief=1 --gtest_filter=${suite}.*)
  # It is skipped if all its tests are.
  set_tests_properties(${name} PROPERTIES LABELS ${label_of_suite} TIMEOUT 360
    SKIP_REGULAR_EXPRESSION "PASSED  . 0 tests[.]\n[^\n]*SKIPPED . [0-9]+ tests?[.]\n*$")
endforeach()
