# gRPC, for the tests of interop/grpc.hpp and the example calls. ULEXITE_GRPC: whether all of it is there.
find_package(PkgConfig QUIET)
if(PKG_CONFIG_FOUND)
  pkg_check_modules(ulexite_grpc QUIET IMPORTED_TARGET GLOBAL grpc++>=1.51 protobuf)
endif()
find_program(ULEXITE_PROTOC protoc)
find_program(ULEXITE_GRPC_CPP_PLUGIN grpc_cpp_plugin)
mark_as_advanced(ULEXITE_PROTOC ULEXITE_GRPC_CPP_PLUGIN)
set(ULEXITE_GRPC OFF)
if(ULEXITE_SANITIZE MATCHES "thread")
  message(STATUS "ThreadSanitizer does not see the locks of Debian's gRPC: what uses gRPC is left out.")
elseif(ulexite_grpc_FOUND AND ULEXITE_PROTOC AND ULEXITE_GRPC_CPP_PLUGIN)
  set(ULEXITE_GRPC ON)
else()
  message(WARNING "gRPC 1.51 (Debian: libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc) was not found: the tests of interop/grpc.hpp and the example calls are left out.")
endif()

# ulexite_protocol(TARGET FILE): an object library of what protoc makes of a .proto file.
function(ulexite_protocol target file)
  cmake_path(GET file STEM stem)
  cmake_path(GET file PARENT_PATH folder)
  set(out ${CMAKE_CURRENT_BINARY_DIR}/generated/${target})
  set(stem ${out}/${stem})
  add_custom_command(OUTPUT ${stem}.pb.cc ${stem}.pb.h ${stem}.grpc.pb.cc ${stem}.grpc.pb.h
    COMMAND ${CMAKE_COMMAND} -E make_directory ${out}
    COMMAND ${ULEXITE_PROTOC} --proto_path=${folder} --cpp_out=${out} --grpc_out=${out}
      --plugin=protoc-gen-grpc=${ULEXITE_GRPC_CPP_PLUGIN} ${file}
    DEPENDS ${file} VERBATIM)
  add_library(${target} OBJECT ${stem}.pb.cc ${stem}.grpc.pb.cc)
  set_target_properties(${target} PROPERTIES UNITY_BUILD OFF)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_compile_options(${target} PRIVATE -w)
  target_include_directories(${target} SYSTEM PUBLIC ${out})
  target_link_libraries(${target} PUBLIC PkgConfig::ulexite_grpc)
endfunction()
