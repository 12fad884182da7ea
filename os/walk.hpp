#pragma once

// Visits the entries of a directory, and everything below it.

#include <ulexite/base/standard.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

namespace ulexite::os {

// Options of walk.
struct walk_options {
  bool recursive = true;         // everything below the root; false: only its direct entries
  bool follow_symlinks = false;  // false: a symbolic link is an entry, and nothing below it is visited
};

// A file, directory or other entry that walk meets.
struct walk_entry {
  std::filesystem::path path;                                             // begins with the given root
  std::filesystem::file_type type = std::filesystem::file_type::unknown;  // unknown: see error
  std::uint64_t size = 0;                                                 // in bytes, of a regular file
  std::size_t depth = 1;                                                  // 1: directly in the root
  std::error_code error{};  // why the entry, or its content, could not be examined
};

}  // namespace ulexite::os

namespace ulexite::detail {

// A walk under way. One user at a time.
class directory_walk {
 public:
  directory_walk(const std::filesystem::path& root, os::walk_options options);
  ~directory_walk();
  directory_walk(const directory_walk&) = delete;
  directory_walk& operator=(const directory_walk&) = delete;

  // The next entries; empty at the end. Valid until the next call.
  const std::vector<os::walk_entry>& fetch();

 private:
  struct tree;
  const std::unique_ptr<tree> tree_;
  std::vector<os::walk_entry> batch_;
};

}  // namespace ulexite::detail

namespace ulexite::os {

// Calls visit(const walk_entry&) for everything in the directory `root`, which may be a symbolic link, and by default
// for everything below. A directory comes before its entries; otherwise there is no order. If `visit` returns a bool,
// false ends the walk. walk calls `visit` in the calling fiber. It reads the entries by the hundred on a thread that
// may block (ulexite::blocking), so they can be slightly out of date.
//
// If an entry cannot be examined, its `error` is set. A directory that cannot be read appears twice, the second time
// with the error. A link that leads back to a directory above it appears once, with the error
// too_many_symbolic_link_levels.
//
// Each batch is a cancellation point: throws operation_cancelled. Throws std::system_error that names `root` if it is
// not a directory, cannot be read or contains a NUL. Throws the exceptions of `visit`.
template <class Visit>
  requires std::is_invocable_v<Visit&, const walk_entry&>
void walk(const std::filesystem::path& root, Visit&& visit, walk_options options = {}) {
  detail::directory_walk under_way(root, options);
  for (;;) {
    const std::vector<walk_entry>& batch = under_way.fetch();
    if (batch.empty()) return;
    for (const walk_entry& each : batch) {
      using told = std::remove_cvref_t<std::invoke_result_t<Visit&, const walk_entry&>>;
      if constexpr (std::is_same_v<told, bool>) {  // a number is no answer
        if (!std::invoke(visit, each)) return;
      } else {
        std::invoke(visit, each);
      }
    }
  }
}

}  // namespace ulexite::os
