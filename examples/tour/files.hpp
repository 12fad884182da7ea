#pragma once

#include "words.hpp"

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tour {

// A regular file, as it was when it was found.
struct source_file {
  std::filesystem::path path;
  struct stat status;
};

// The numbers of skipped entries of a directory tree.
struct skipped {
  std::uint64_t unreadable = 0;          // directories, and files that cannot be opened
  std::uint64_t broken_links = 0;        // that lead nowhere
  std::uint64_t linked_directories = 0;  // not followed: they may lead in circles
  std::uint64_t special = 0;             // devices, pipes, sockets
  std::uint64_t mounts = 0;              // directories of other file systems
  [[nodiscard]] std::string str() const;
};

// Calls `found` for each regular file below `directory`; a link to a file counts as one. Blocks in system calls.
void walk(const std::filesystem::path& directory, skipped& skipped, const std::function<void(source_file)>& found);

// Whether the file was removed or changed since it was found.
bool has_changed(const source_file& file);

// Reads a file to its end, so that it is in memory. Blocks, and needs a thread's stack.
void warm_up(const source_file& file);

// Reads files and counts their words.
class file_counter {
 public:
  explicit file_counter(word_counts& into) : into_(into), piece_(64 * 1024) {}
  // Nothing if the file cannot be read. Reads in the ordinary, blocking way. After each piece it lets other fibers run,
  // so that one long file does not keep the worker for itself. A file that grows is read up to the size it had.
  std::optional<file_count> count(const source_file& file);

 private:
  word_counts& into_;
  std::vector<char> piece_;
};

}  // namespace tour
