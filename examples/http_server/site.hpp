#pragma once

#include <ulexite/os/directory.hpp>
#include <ulexite/os/file.hpp>

#include <sys/types.h>

#include <cstdint>
#include <ctime>
#include <filesystem>
#include <string>
#include <string_view>

namespace http_server {

// A file of the site, opened. Movable.
class open_file {
 public:
  open_file() = default;
  // Looks at what was opened for reading. Throws std::system_error.
  explicit open_file(ulexite::os::file opened);

  [[nodiscard]] bool is_regular() const noexcept { return regular_; }
  [[nodiscard]] bool is_directory() const noexcept { return directory_; }
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] const timespec& modified() const noexcept { return modified_; }

  // Bytes from `offset` on: how many, 0 at the end. The fiber waits. Throws std::system_error.
  std::size_t read_at(std::uint64_t offset, char* data, std::size_t size) { return file_.read_at(data, size, offset); }
  [[nodiscard]] int native_handle() const noexcept { return file_.native_handle(); }

 private:
  ulexite::os::file file_;
  bool regular_ = false, directory_ = false;
  std::uint64_t size_ = 0;
  timespec modified_{};
};

// The file or directory of a request's target.
struct lookup {
  enum {
    found,        // file, type
    moved,        // a directory, asked for without the final slash
    missing,      // nothing there, or outside of the site
    forbidden,    // the process may not read it
    unavailable,  // it cannot be opened now: no descriptors, a broken disk
  } outcome = missing;
  open_file file{};
  std::string_view type{};
};

// The files under one directory.
class site {
 public:
  // Throws std::system_error naming the directory when there is none.
  explicit site(const std::filesystem::path& directory) : root_(directory) {}

  // `path` is that of decode_target, not empty. Finds only files that are really under the directory, despite dots,
  // symbolic links, and renames during the call. Waits where the disk must be asked, and is a cancellation point.
  [[nodiscard]] lookup find(const std::string& path) const;

 private:
  [[nodiscard]] lookup open(const std::string& wanted, bool as_directory) const;

  ulexite::os::directory root_;
};

// The path of a target such as "/a%20b.html?query", unescaped; empty if it is malformed.
[[nodiscard]] std::string decode_target(std::string_view target);

// The Content-Type that goes with a file's name.
[[nodiscard]] std::string_view type_of(std::string_view file);

}  // namespace http_server
