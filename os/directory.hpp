#pragma once

#include <ulexite/os/file.hpp>

#include <filesystem>
#include <system_error>

namespace ulexite {

// A directory below which files are opened by their paths, and never one outside, whatever links there are, and whatever
// moves or links directories meanwhile: for servers whose users name the files. The kernel sees to it (openat2, Linux
// 5.6; else each step is checked). Any number of fibers and threads may use it at the same time. What waits is a
// cancellation point as in file; errors as there.
class directory {
 public:
  // Opens the directory `path`, on the pool.
  explicit directory(const std::filesystem::path& path);
  directory(const std::filesystem::path& path, std::error_code& error);

  // Opens the file `below`, a relative path. Links are followed as long as they stay inside; an absolute one leads
  // outside unless it names something inside. What lies outside is not found. It waits for the pool, unless the kernel
  // has the path in memory and the file is only to be read. A pipe is opened without a wait for its other end. Throws
  // usage_error for a contradictory mode.
  [[nodiscard]] file open(const std::filesystem::path& below, open_mode mode = open_mode::read,
                          std::filesystem::perms permissions = default_permissions) const;
  [[nodiscard]] file open(const std::filesystem::path& below, open_mode mode, std::error_code& error) const {
    return open(below, mode, default_permissions, error);
  }
  [[nodiscard]] file open(const std::filesystem::path& below, open_mode mode, std::filesystem::perms permissions,
                          std::error_code& error) const;

  // Its path without links, as it was when it was opened.
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  // Its descriptor, opened with O_PATH. It stays this object's.
  [[nodiscard]] int native_handle() const noexcept { return root_.native_handle(); }

 private:
  [[nodiscard]] int open_without_links(const std::filesystem::path& below, int flags, unsigned permissions) const;

  std::filesystem::path path_;
  file root_;
};

}  // namespace ulexite
