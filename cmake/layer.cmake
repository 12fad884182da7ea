# Sets `result` to the headers that the header `files` include, directly or not, and those themselves. All are relative
# to the project's folder.
function(ulexite_headers_of result)
  set(seen "")
  set(todo ${ARGN})
  while(todo)
    list(POP_FRONT todo header)
    if(NOT header IN_LIST seen)
      list(APPEND seen ${header})
      file(STRINGS ${PROJECT_SOURCE_DIR}/${header} lines REGEX "^#include <ulexite/.*[.]hpp>")
      foreach(line IN LISTS lines)
        string(REGEX REPLACE "^#include <ulexite/([^>]*)>.*" "\\1" included "${line}")
        list(APPEND todo ${included})
      endforeach()
    endif()
  endwhile()
  set(${result} ${seen} PARENT_SCOPE)
endfunction()

# ulexite_layer(<layer> [NEEDS <layer>...] [HIDES <layer>...] [USES <header>...] [SOURCES <file>...] [LIBRARIES <target>...]
#               [INTO <target>])
#
# A layer is a folder, or a room: a folder in a layer's folder, as runtime/wait. The layer sees its rooms if it NEEDS
# them; a room sees of its layer only the headers that it USES.
#
# Headers live beside their sources and are included as <ulexite/LAYER/file.hpp>: in the build tree, under
# add_subdirectory, and once installed. The headers that users may include are installed, and the headers that these
# include. Each layer compiles against its own include root, and the roots of the layers that it NEEDS and HIDES. Its
# users see the layers that it NEEDS; only its own .cpp files see those that it HIDES. So an include that points upward,
# or around, does not compile. This enforces the table in docs/architecture.md. Each header is also compiled alone,
# against the layers that its layer's users see (target all_verify_interface_header_sets). So a header that includes a
# hidden layer does not pass either.
#
# SOURCES are files that lie beside a header of an earlier room and define what needs this layer: ulexite_late_sources
# has all of them, and the room of their header leaves them out.
#
# LIBRARIES are the third-party targets that the layer's own sources may use. INTO is the library that the layer becomes
# a part of: ulexite, unless another is named.
function(ulexite_layer layer)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "INTO" "NEEDS;HIDES;USES;SOURCES;LIBRARIES")
  if(NOT arg_INTO)
    set(arg_INTO ulexite)
  endif()
  set(folder ${PROJECT_SOURCE_DIR}/${layer})
  string(REPLACE "/" "_" name ${layer})
  set(root ${PROJECT_BINARY_DIR}/include/${name})
  cmake_path(GET layer PARENT_PATH parent)
  file(MAKE_DIRECTORY ${root}/ulexite/${parent})
  file(CREATE_LINK ${folder} ${root}/ulexite/${layer} SYMBOLIC)
  foreach(header IN LISTS arg_USES)
    file(CREATE_LINK ${PROJECT_SOURCE_DIR}/${header} ${root}/ulexite/${header} SYMBOLIC)
  endforeach()

  file(GLOB sources CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} ${folder}/*.cpp)
  list(REMOVE_ITEM sources ${ulexite_late_sources})
  list(APPEND sources ${arg_SOURCES})
  file(GLOB headers CONFIGURE_DEPENDS RELATIVE ${folder} ${folder}/*.hpp ${folder}/*.h)
  list(TRANSFORM headers PREPEND ${layer}/)
  set(installed ${ulexite_installed_headers})
  list(FILTER installed INCLUDE REGEX "^${layer}/[^/]+$")
  list(TRANSFORM installed PREPEND ${root}/ulexite/)
  list(TRANSFORM headers PREPEND ${root}/ulexite/)
  if(NOT sources)  # a layer of headers is an object library all the same
    set(sources ${root}/headers_only.cpp)
    file(CONFIGURE OUTPUT ${sources} CONTENT "// The layer ${layer} has no sources of its own.\n")
  endif()
  foreach(list IN ITEMS arg_NEEDS arg_HIDES)
    list(TRANSFORM ${list} PREPEND ulexite_)
    list(TRANSFORM ${list} REPLACE "/" "_")
  endforeach()

  set(target ulexite_${name})
  set(ulexite_layers ${ulexite_layers} ${target} PARENT_SCOPE)
  add_library(${target} OBJECT ${sources})
  set_target_properties(${target} PROPERTIES
    POSITION_INDEPENDENT_CODE ON  # the same objects make the static and the shared library
    VERIFY_INTERFACE_HEADER_SETS ON)
  target_sources(${target} PUBLIC FILE_SET HEADERS BASE_DIRS ${root} FILES ${headers})
  target_include_directories(${target} BEFORE PRIVATE ${ulexite_errno})
  target_compile_features(${target} PUBLIC cxx_std_20)
  # Debug info and sanitizer reports name the file in the source tree, not the link to it. The reports of a program name
  # it as it is included, because the machine that built the library is not the one that runs the program.
  target_compile_options(${target}
    PUBLIC -fdebug-prefix-map=${root}/ulexite=${PROJECT_SOURCE_DIR} -fmacro-prefix-map=${root}/ulexite=ulexite
    # No program replaces single functions of a shared library of ours, so g++ may inline them in position-independent
    # code.
    PRIVATE -fstack-clash-protection -fno-semantic-interposition
    # The jump keeps no shadow stack, so the objects must not claim that they can run with one (a default of some g++).
    $<$<STREQUAL:${CMAKE_SYSTEM_PROCESSOR},x86_64>:-fcf-protection=none>)
  ulexite_common_options(${target})
  target_link_libraries(${target} PUBLIC ${arg_NEEDS} PRIVATE ${arg_HIDES} ${arg_LIBRARIES})

  target_sources(${arg_INTO}
    PRIVATE $<TARGET_OBJECTS:${target}>
    PUBLIC FILE_SET ${name} TYPE HEADERS BASE_DIRS ${root} FILES ${installed})
  set_property(TARGET ${arg_INTO} APPEND PROPERTY ulexite_layers ${name})
endfunction()
