#pragma once

#include <ulexite/os/file.hpp>

#include <filesystem>

namespace http_server {

// Opens files by their paths below one directory, and never one outside, whatever links there are, and whatever moves
// or links directories meanwhile. Any thread.
class directory {
 public:
  // Throws std::system_error naming the directory when there is none.
  explicit directory(const std::filesystem::path& path);

  // For reading. Links are followed, absolute ones too. A pipe does not block. Blocks on the disk. Throws
  // std::system_error; what lies outside is not found.
  [[nodiscard]] ulexite::file open(const std::filesystem::path& below) const;

 private:
  [[nodiscard]] int open_without_links(const std::filesystem::path& below) const;

  std::filesystem::path path_;  // without links
  ulexite::file root_;
};

}  // namespace http_server
