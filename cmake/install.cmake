# Installs the library, its headers, and what find_package(ulexite) and pkg-config need to find them. The result can
# be moved.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/ulexite)

set(layers "")
foreach(target IN ITEMS ulexite ulexite_testing_library)
  get_target_property(layers_of_target ${target} ulexite_layers)
  list(APPEND layers ${layers_of_target})
endforeach()
list(TRANSFORM layers REPLACE "^(.+)$" "FILE_SET;\\1;COMPONENT;development")
install(TARGETS ulexite ulexite_testing_library ulexite_faults ulexite_mutex_check ulexite_signal_check EXPORT ulexite-targets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT development
  FILE_SET umbrella COMPONENT development ${layers})
install(EXPORT ulexite-targets NAMESPACE ulexite:: DESTINATION ${package_dir} COMPONENT development)
install(FILES base/errno/errno.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ulexite/base/errno COMPONENT development)

configure_package_config_file(cmake/ulexite-config.cmake.in ${PROJECT_BINARY_DIR}/ulexite-config.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/ulexite-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/ulexite-config.cmake
  ${PROJECT_BINARY_DIR}/ulexite-config-version.cmake
  cmake/FindLibevent.cmake
  cmake/ulexite_check_tls.cmake
  DESTINATION ${package_dir} COMPONENT development)

install(PROGRAMS tools/tls_check DESTINATION ${package_dir} COMPONENT development)
install(FILES tools/gdb/ulexite.py tools/gdb/ulexite_layout.py DESTINATION ${CMAKE_INSTALL_DATADIR}/ulexite/gdb COMPONENT scripts)
install(FILES tools/lldb/ulexite_lldb.py DESTINATION ${CMAKE_INSTALL_DATADIR}/ulexite/lldb COMPONENT scripts)
install(PROGRAMS tools/offcpu DESTINATION ${CMAKE_INSTALL_BINDIR} RENAME ulexite-offcpu COMPONENT scripts)
if(BUILD_SHARED_LIBS)  # gdb loads by itself what it finds here under the library's path
  set(auto_load ${CMAKE_INSTALL_DATADIR}/gdb/auto-load${CMAKE_INSTALL_FULL_LIBDIR})
  file(RELATIVE_PATH script /prefix/${auto_load} /prefix/${CMAKE_INSTALL_DATADIR}/ulexite/gdb/ulexite.py)
  set(link ${PROJECT_BINARY_DIR}/libulexite.so.${PROJECT_VERSION}-gdb.py)
  file(CREATE_LINK ${script} ${link} SYMBOLIC)
  install(FILES ${link} DESTINATION ${auto_load} COMPONENT scripts)
endif()

file(RELATIVE_PATH ULEXITE_PC_PREFIX ${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" ULEXITE_PC_PREFIX ${ULEXITE_PC_PREFIX})
set(ULEXITE_PC_CFLAGS "")
foreach(definition IN LISTS ulexite_definitions)
  string(APPEND ULEXITE_PC_CFLAGS " -D${definition}")
endforeach()
# A program that links the static library also links what that needs, so pkg-config says it without --static.
set(ULEXITE_PC_REQUIRES "")
set(ULEXITE_PC_LIBS "")
if(NOT BUILD_SHARED_LIBS)
  set(ULEXITE_PC_REQUIRES "libevent_core >= 2.1, libevent_pthreads >= 2.1")
  if(ulexite_switch_library)
    set(ULEXITE_PC_LIBS " -lboost_context")
  endif()
endif()
configure_file(cmake/ulexite.pc.in ${PROJECT_BINARY_DIR}/ulexite.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/ulexite.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
