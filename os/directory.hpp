#pragma once

#include <ulexite/os/file.hpp>

#include <concepts>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace ulexite::os {

// Opens files by their paths below one directory, and never a file outside. It is for servers with users that name the
// files. Links do not lead outside, even if directories are moved or linked during a call. The kernel ensures this
// (openat2, Linux 5.6); on older kernels each step is checked. Any number of fibers and threads may use it at the same
// time. Functions that wait are cancellation points as in file; errors are as in file.
class directory {
 public:
  // Opens the directory `path`, on the pool.
  explicit directory(const std::filesystem::path& path);
  directory(const std::filesystem::path& path, std::error_code& error);

  // Opens the file `below`, a relative path. Follows links that stay inside; an absolute link is followed only if it
  // names something inside. A file outside is reported as not found, and without openat2 also a path that cannot be
  // followed; but with open_mode::exclusive each link is file_exists. Does not wait for the other end of a pipe. Fails
  // with resource_unavailable_try_again if another process holds a lease on the file (fcntl). Throws usage_error for a
  // contradictory mode.
  //
  // Waits for the pool, unless all of this holds: the file is only to be read, the kernel has its path in memory, and
  // it lies in the directory's own file system, which is local. Then the open is made on the worker. If it lasts,
  // another thread takes the worker over.
  [[nodiscard]] file open(const std::string& below, open_mode mode = open_mode::read,
                          std::filesystem::perms permissions = default_permissions) const;
  [[nodiscard]] file open(const std::string& below, open_mode mode, std::error_code& error) const {
    return open(below, mode, default_permissions, error);
  }
  [[nodiscard]] file open(const std::string& below, open_mode mode, std::filesystem::perms permissions,
                          std::error_code& error) const;
  // The same for a std::string_view and what converts only to that.
  template <std::convertible_to<std::string_view> View, class... Rest>
    requires(!std::convertible_to<View, std::string>)
  [[nodiscard]] file open(const View& below, Rest&&... rest) const {
    return open(std::string(std::string_view(below)), std::forward<Rest>(rest)...);
  }

  // The directory's path without links, as of the opening.
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  // The descriptor, opened with O_PATH. The object keeps it.
  [[nodiscard]] int native_handle() const noexcept { return root_.native_handle(); }

 private:
  [[nodiscard]] int try_open(const std::string& below, int flags) const noexcept;
  [[nodiscard]] int open_without_links(const std::string& below, int flags, unsigned permissions, int kernels) const;

  std::filesystem::path path_;
  file root_;
  bool local_ = false;  // opens seldom wait in the root's file system
};

}  // namespace ulexite::os
