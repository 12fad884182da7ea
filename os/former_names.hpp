#pragma once

// The names of namespace ulexite::os as they were before 0.1, in namespace ulexite. 0.2 will not have them.

#include <ulexite/os/directory.hpp>
#include <ulexite/os/file.hpp>
#include <ulexite/os/pipe.hpp>
#include <ulexite/os/process.hpp>
#include <ulexite/os/signal_set.hpp>
#include <ulexite/os/standard_streams.hpp>
#include <ulexite/os/walk.hpp>

#include <concepts>
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace ulexite {

// Former names of the types of ulexite::os.
using open_mode [[deprecated("use ulexite::os::open_mode")]] = os::open_mode;
using file [[deprecated("use ulexite::os::file")]] = os::file;
using directory [[deprecated("use ulexite::os::directory")]] = os::directory;
using pipe_end [[deprecated("use ulexite::os::pipe_end")]] = os::pipe_end;
using pipe_reader [[deprecated("use ulexite::os::pipe_reader")]] = os::pipe_reader;
using pipe_writer [[deprecated("use ulexite::os::pipe_writer")]] = os::pipe_writer;
using stdio [[deprecated("use ulexite::os::stdio")]] = os::stdio;
using process_options [[deprecated("use ulexite::os::process_options")]] = os::process_options;
using exit_status [[deprecated("use ulexite::os::exit_status")]] = os::exit_status;
using process [[deprecated("use ulexite::os::process")]] = os::process;
using process_output [[deprecated("use ulexite::os::process_output")]] = os::process_output;
using signal_set [[deprecated("use ulexite::os::signal_set")]] = os::signal_set;
using byte_stream [[deprecated("use ulexite::os::byte_stream")]] = os::byte_stream;
using input_stream [[deprecated("use ulexite::os::input_stream")]] = os::input_stream;
using output_stream [[deprecated("use ulexite::os::output_stream")]] = os::output_stream;
using walk_options [[deprecated("use ulexite::os::walk_options")]] = os::walk_options;
using walk_entry [[deprecated("use ulexite::os::walk_entry")]] = os::walk_entry;
// Former name of os::default_permissions. It cannot warn: a second object would be ambiguous under both namespaces.
using os::default_permissions;

// Former names of the functions of ulexite::os. They are templates so that an unqualified call prefers those of os.
template <class = void>
[[nodiscard, deprecated("use ulexite::os::read_all")]] std::string read_all(const std::filesystem::path& path,
                                                                            std::error_code& error) {
  return os::read_all(path, error);
}
template <class = void>
[[nodiscard, deprecated("use ulexite::os::read_all")]] std::string read_all(const std::filesystem::path& path) {
  return os::read_all(path);
}
template <class = void>
[[deprecated("use ulexite::os::write_all")]] void write_all(const std::filesystem::path& path, std::string_view data,
                                                            std::error_code& error) {
  return os::write_all(path, data, error);
}
template <class = void>
[[deprecated("use ulexite::os::write_all")]] void write_all(const std::filesystem::path& path, std::string_view data) {
  return os::write_all(path, data);
}
template <class = void>
[[deprecated("use ulexite::os::replace_file")]] void replace_file(const std::filesystem::path& path,
                                                                  std::string_view data, std::error_code& error) {
  return os::replace_file(path, data, error);
}
template <class = void>
[[deprecated("use ulexite::os::replace_file")]] void replace_file(const std::filesystem::path& path,
                                                                  std::string_view data) {
  return os::replace_file(path, data);
}
template <class = void>
[[nodiscard, deprecated("use ulexite::os::to_string")]] std::string to_string(os::exit_status status) {
  return os::to_string(status);
}
template <class = void>
[[nodiscard, deprecated("use ulexite::os::standard_input")]] os::input_stream& standard_input() {
  return os::standard_input();
}
template <class = void>
[[nodiscard, deprecated("use ulexite::os::standard_output")]] os::output_stream& standard_output() {
  return os::standard_output();
}
template <class = void>
[[nodiscard, deprecated("use ulexite::os::standard_error")]] os::output_stream& standard_error() {
  return os::standard_error();
}
template <class = void>
[[nodiscard, deprecated("use ulexite::os::output_of")]] os::process_output output_of(
    os::process_options options, std::string_view input = {}, std::size_t limit = std::string::npos) {
  return os::output_of(std::move(options), input, limit);
}
template <std::convertible_to<std::filesystem::path> Root, class Visit>
[[deprecated("use ulexite::os::walk")]] void walk(const Root& root, Visit&& visit, os::walk_options options = {}) {
  os::walk(root, std::forward<Visit>(visit), options);
}

}  // namespace ulexite
