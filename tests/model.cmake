# The models:
#
#   tests/model/x_model.cpp    Relacy                                                          label model
#                              a line `// MUTANT: x` adds a build with -DULEXITE_MUTANT=x that must fail   label mutant
#   tests/model/x.pml          Promela; a line `/* RUN: -DX=1 */` is a case that must hold     label model
#                              a line `/* MUTANT: -DX=0 */` one in which spin must find an error          label mutant

# ---- model: Relacy ----
# No part of `all`, because they take longer to compile than everything else: the target `models` builds what must
# hold, `mutants` what must fail.
add_custom_target(models)
add_custom_target(mutants)
find_path(ULEXITE_RELACY_INCLUDE_DIR relacy/relacy.hpp)
mark_as_advanced(ULEXITE_RELACY_INCLUDE_DIR)

# A model that puts the library's own text under Relacy (relacy_library.hpp) compiles an edited copy of it. It defines
# functions of the library's itself, so it is not linked with the library.
set(edit_text ${CMAKE_CURRENT_SOURCE_DIR}/model/edit_text.py)
function(ulexite_model_program group target file mutant)
  add_executable(${target} EXCLUDE_FROM_ALL ${file})
  add_dependencies(${group} ${target})
  file(STRINGS ${file} is_edited REGEX "^#include \"relacy_library.hpp\"$")
  if(NOT is_edited)
    target_link_libraries(${target} PRIVATE ulexite::ulexite)
  else()
    foreach(property INCLUDE_DIRECTORIES COMPILE_DEFINITIONS)
      set_property(TARGET ${target} PROPERTY ${property} $<TARGET_PROPERTY:ulexite::ulexite,INTERFACE_${property}>)
    endforeach()
    set(texts ${CMAKE_CURRENT_BINARY_DIR}/model/${target}.texts)
    set(edited "")
    file(STRINGS ${file} naming REGEX "^#include \"relacy_[a-z]+.hpp\"$")
    list(TRANSFORM naming REPLACE "^#include \"(.*)\"$" "${CMAKE_CURRENT_SOURCE_DIR}/model/\\1")
    list(APPEND naming ${file})
    foreach(each IN LISTS naming)
      file(STRINGS ${each} edits REGEX "^//   [a-z_/]+[.][ch]pp: ")
      list(TRANSFORM edits REPLACE "^//   ([a-z_/.]+): .*$" "${PROJECT_SOURCE_DIR}/\\1")
      list(APPEND edited ${edits})
    endforeach()
    list(REMOVE_DUPLICATES edited)
    add_custom_command(OUTPUT ${texts}/done
      COMMAND ${Python3_EXECUTABLE} ${edit_text} ${texts} ${mutant} ${naming}
      COMMAND ${CMAKE_COMMAND} -E touch ${texts}/done
      DEPENDS ${edit_text} ${naming} ${edited})
    target_sources(${target} PRIVATE ${texts}/done)
    target_compile_options(${target} PRIVATE -fno-lifetime-dse)  # so that Relacy knows what was destroyed
    target_include_directories(${target} BEFORE PRIVATE ${texts})
  endif()
  target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_include_directories(${target} SYSTEM PRIVATE ${ULEXITE_RELACY_INCLUDE_DIR})
  target_compile_features(${target} PRIVATE cxx_std_20)
  # -O2 takes twice as long to compile, and gains a fifth. Relacy's longjmp from stack to stack is what _FORTIFY_SOURCE
  # takes for a mistake.
  target_compile_options(${target} PRIVATE -w -fpermissive -O1 -g0 -U_FORTIFY_SOURCE)
  target_compile_definitions(${target} PRIVATE ULEXITE_MODEL=1 ULEXITE_MUTANT=${mutant})
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/model)
endfunction()

file(GLOB programs CONFIGURE_DEPENDS model/*_model.cpp)
if(programs AND NOT ULEXITE_RELACY_INCLUDE_DIR)
  message(WARNING "Relacy (Debian: relacy-dev) was not found: the model tests under it are left out.")
  set(programs "")
endif()
foreach(program IN LISTS programs)
  ulexite_stem(${program} "_model" stem)
  ulexite_model_program(models ${stem}_model ${program} none)
  add_test(NAME model.${stem} COMMAND ${stem}_model)
  set_tests_properties(model.${stem} PROPERTIES LABELS model TIMEOUT 900)

  ulexite_marked_lines(${program} "//" MUTANT "" mutants)
  foreach(mutant IN LISTS mutants)
    string(REGEX REPLACE "[^A-Za-z0-9_].*$" "" mutant ${mutant})  # what follows the name explains it
    set(target ${stem}_model_${mutant})
    ulexite_model_program(mutants ${target} ${program} ${mutant})
    add_test(NAME model.${stem}.mutant.${mutant}
      COMMAND ${PROJECT_SOURCE_DIR}/tools/expect_failure $<TARGET_FILE:${target}>)
    set_tests_properties(model.${stem}.mutant.${mutant} PROPERTIES LABELS mutant TIMEOUT 300)
  endforeach()
endforeach()

# ---- model: Promela ----
find_program(ULEXITE_SPIN spin)
mark_as_advanced(ULEXITE_SPIN)

function(ulexite_spin_test label name file arguments)
  separate_arguments(arguments UNIX_COMMAND "${arguments}")
  add_test(NAME ${name} COMMAND ${PROJECT_SOURCE_DIR}/tools/spin_model ${ARGN} ${file} ${arguments})
  # A search takes up to 1.6 GB.
  set_tests_properties(${name} PROPERTIES LABELS ${label} TIMEOUT 300 PROCESSORS 2)
endfunction()

file(GLOB models CONFIGURE_DEPENDS model/*.pml)
if(models AND NOT ULEXITE_SPIN)
  message(WARNING "spin (Debian: spin) was not found: the Promela models are left out.")
  set(models "")
endif()
foreach(model IN LISTS models)
  cmake_path(GET model STEM stem)
  ulexite_marked_lines(${model} "/\\*" RUN "\\*/" runs)
  ulexite_marked_lines(${model} "/\\*" MUTANT "\\*/" mutants)
  if(NOT runs)  # at least as it stands
    ulexite_spin_test(model model.${stem} ${model} "")
  endif()
  foreach(run IN LISTS runs)
    string(REPLACE " " "" label "${run}")
    ulexite_spin_test(model model.${stem}${label} ${model} "${run}")
  endforeach()
  foreach(mutant IN LISTS mutants)
    string(REPLACE " " "" label "${mutant}")
    ulexite_spin_test(mutant model.${stem}.mutant${label} ${model} "${mutant}" --expect-error)
  endforeach()
endforeach()

