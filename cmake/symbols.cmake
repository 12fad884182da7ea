# What the shared library exports. An installed one exports what programs can name: tools/symbol_map finds it whenever
# the library is linked. Tests and benchmarks use the library's inner parts, and a part of another project promises
# nothing, so there it exports everything.
set(symbols ${PROJECT_SOURCE_DIR}/interop/c/symbols.map)
if(ULEXITE_INSTALL AND NOT ULEXITE_BUILD_TESTS AND NOT ULEXITE_BUILD_BENCHMARKS)
  ulexite_find(Python3 COMPONENTS Interpreter DEBIAN "python3" OR
    ", or build a static library, which needs none (BUILD_SHARED_LIBS=OFF)")
  file(GLOB checks CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} testing/*/*.hpp testing/*/*.cpp)
  get_target_property(layers ulexite ulexite_layers)
  list(TRANSFORM layers REPLACE "^(.+)$" "$<TARGET_OBJECTS:ulexite_\\1>" OUTPUT_VARIABLE objects)
  add_custom_command(OUTPUT symbols.map
    COMMAND ${Python3_EXECUTABLE} tools/symbol_map ${PROJECT_BINARY_DIR}/symbols.map ${CMAKE_NM} ${PROJECT_SOURCE_DIR}
      -- ${ulexite_installed_headers} ${checks} -- $<TARGET_OBJECTS:ulexite_testing> -- ${objects}
    DEPENDS tools/symbol_map ${symbols} ${ulexite_installed_headers} ${checks} $<TARGET_OBJECTS:ulexite_testing> ${objects}
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
    COMMENT "Finding the symbols that programs can name"
    COMMAND_EXPAND_LISTS VERBATIM)
  set(symbols ${PROJECT_BINARY_DIR}/symbols.map)
  target_sources(ulexite PRIVATE ${symbols})
  add_dependencies(ulexite ulexite_testing)  # make knows a file of another target only if that is built first
endif()
target_link_options(ulexite PRIVATE LINKER:--version-script=${symbols})
set_property(TARGET ulexite APPEND PROPERTY LINK_DEPENDS ${symbols})
