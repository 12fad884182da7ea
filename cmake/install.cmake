# Installs the library, its headers, and what find_package(ulexite) and pkg-config need to find them. The result can
# be moved.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/ulexite)

set(layers "")
foreach(target IN ITEMS ulexite ulexite_testing_library)
  get_target_property(layers_of_target ${target} ulexite_layers)
  list(APPEND layers ${layers_of_target})
endforeach()
list(TRANSFORM layers PREPEND "FILE_SET;")
install(TARGETS ulexite ulexite_testing_library ulexite_faults ulexite_mutex_check ulexite_signal_check EXPORT ulexite-targets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  FILE_SET umbrella ${layers})
install(EXPORT ulexite-targets NAMESPACE ulexite:: DESTINATION ${package_dir})

configure_package_config_file(cmake/ulexite-config.cmake.in ${PROJECT_BINARY_DIR}/ulexite-config.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/ulexite-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/ulexite-config.cmake
  ${PROJECT_BINARY_DIR}/ulexite-config-version.cmake
  cmake/FindLibevent.cmake
  cmake/ulexite_check_tls.cmake
  DESTINATION ${package_dir})

install(PROGRAMS tools/tls_check DESTINATION ${package_dir})
install(FILES tools/gdb/ulexite.py tools/gdb/ulexite_layout.py DESTINATION ${CMAKE_INSTALL_DATADIR}/ulexite/gdb)
install(FILES tools/lldb/ulexite_lldb.py DESTINATION ${CMAKE_INSTALL_DATADIR}/ulexite/lldb)

file(RELATIVE_PATH ULEXITE_PC_PREFIX /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
string(REGEX REPLACE "/$" "" ULEXITE_PC_PREFIX ${ULEXITE_PC_PREFIX})
set(ULEXITE_PC_CFLAGS "")
foreach(definition IN LISTS ulexite_definitions)
  string(APPEND ULEXITE_PC_CFLAGS " -D${definition}")
endforeach()
configure_file(cmake/ulexite.pc.in ${PROJECT_BINARY_DIR}/ulexite.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/ulexite.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
