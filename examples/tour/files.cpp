#include "files.hpp"

#include "text.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <ulexite.hpp>

#include <algorithm>
#include <array>
#include <string_view>
#include <system_error>
#include <utility>

namespace tour {
namespace {

// A file, open for reading.
class open_file {
 public:
  // Never waits, not even if the file has just been replaced by a pipe without a writer.
  explicit open_file(const std::filesystem::path& path) noexcept
      : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)) {
    struct stat status{};
    regular_ = fd_ >= 0 && fstat(fd_, &status) == 0 && S_ISREG(status.st_mode);
  }
  ~open_file() {
    if (fd_ >= 0) ::close(fd_);
  }
  open_file(const open_file&) = delete;
  open_file& operator=(const open_file&) = delete;

  explicit operator bool() const noexcept { return regular_; }
  ssize_t read(char* into, std::size_t size) noexcept { return ::read(fd_, into, size); }

 private:
  int fd_;
  bool regular_ = false;
};

// One walk. The directories that must still be read are on a separate stack, because a tree may be too deep for a
// fiber's stack.
class walk_below {
 public:
  walk_below(skipped& skipped, const std::function<void(source_file)>& found) : skipped_(skipped), found_(found) {}

  void run(const std::filesystem::path& root) {
    struct stat status{};
    if (stat(root.c_str(), &status) != 0) ++skipped_.unreadable;
    device_ = status.st_dev;
    for (pending_.push_back(root); !pending_.empty();) {
      const std::filesystem::path directory = std::move(pending_.back());
      pending_.pop_back();
      read(directory);
    }
  }

 private:
  void read(const std::filesystem::path& directory) {
    std::error_code error;
    std::filesystem::directory_iterator entry(directory, error);
    for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) look_at(entry->path());
    if (error) ++skipped_.unreadable;
  }

  void look_at(const std::filesystem::path& path) {
    struct stat status{};
    if (lstat(path.c_str(), &status) != 0) {
      ++skipped_.unreadable;
    } else if (S_ISDIR(status.st_mode)) {
      if (status.st_dev == device_)
        pending_.push_back(path);
      else
        ++skipped_.mounts;
    } else if (S_ISLNK(status.st_mode) && stat(path.c_str(), &status) != 0) {
      ++skipped_.broken_links;
    } else if (S_ISDIR(status.st_mode)) {
      ++skipped_.linked_directories;
    } else if (!S_ISREG(status.st_mode)) {
      ++skipped_.special;
    } else {
      found_({path, status});
    }
  }

  skipped& skipped_;
  const std::function<void(source_file)>& found_;
  dev_t device_ = 0;
  std::vector<std::filesystem::path> pending_;
};

}  // namespace

std::string skipped::str() const {
  std::string text;
  const auto tell = [&](std::uint64_t number, const char* what) {
    if (number != 0) text += (text.empty() ? "" : ", ") + grouped(number) + " " + what;
  };
  tell(unreadable, "unreadable");
  tell(broken_links, "broken links");
  tell(linked_directories, "links to directories");
  tell(special, "special files");
  tell(mounts, "directories of other file systems");
  return text.empty() ? "nothing" : text;
}

void walk(const std::filesystem::path& directory, skipped& skipped, const std::function<void(source_file)>& found) {
  walk_below(skipped, found).run(directory);
}

bool has_changed(const source_file& file) {
  struct stat now{};
  const struct stat& then = file.status;
  // The time of the last change of status also moves with each change of the contents.
  return stat(file.path.c_str(), &now) != 0 || now.st_ino != then.st_ino || now.st_size != then.st_size ||
         now.st_ctim.tv_sec != then.st_ctim.tv_sec || now.st_ctim.tv_nsec != then.st_ctim.tv_nsec;
}

void warm_up(const source_file& file) {
  open_file opened(file.path);
  std::array<char, 64 * 1024> waste;
  auto rest = static_cast<std::size_t>(file.status.st_size);
  while (opened && rest != 0) {
    const ssize_t got = opened.read(waste.data(), std::min(rest, waste.size()));
    if (got <= 0) return;
    rest -= static_cast<std::size_t>(got);
  }
}

std::optional<file_count> file_counter::count(const source_file& file) {
  open_file opened(file.path);
  if (!opened) return std::nullopt;
  tokenizer words(into_);
  auto rest = static_cast<std::size_t>(file.status.st_size);
  for (bool first = true; rest != 0; first = false) {
    const ssize_t got = opened.read(piece_.data(), std::min(rest, piece_.size()));
    if (got < 0 && first) return std::nullopt;
    if (got <= 0) break;  // a file that breaks off counts as far as it goes
    words.feed({piece_.data(), static_cast<std::size_t>(got)});
    rest -= static_cast<std::size_t>(got);
    ulexite::this_fiber::yield();
  }
  return words.finish();
}

}  // namespace tour
