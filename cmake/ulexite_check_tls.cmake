# ulexite_check_tls(<target> [ARGUMENTS <argument>...])
#
# Checks <target>, a program or a shared library, with tools/tls_check each time it is linked. The build fails if it
# keeps an address of thread-local data over a call that may let the fiber change its thread. x86-64 only; needs objdump
# and Python 3. ARGUMENTS go to tls_check: --roots REGEX, --calm REGEX.
find_file(ulexite_tls_check tls_check REQUIRED NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH
  PATHS ${CMAKE_CURRENT_LIST_DIR} ${CMAKE_CURRENT_LIST_DIR}/../tools)
mark_as_advanced(ulexite_tls_check)

function(ulexite_check_tls target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "ARGUMENTS")
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  add_custom_command(TARGET ${target} POST_BUILD
    COMMAND ${Python3_EXECUTABLE} ${ulexite_tls_check} ${arg_ARGUMENTS} $<TARGET_FILE:${target}>
    COMMENT "Checking the thread-local data of ${target}"
    VERBATIM)
endfunction()
