#pragma once

// Files of a file system. An operation runs on a thread that may block, in one call of ulexite::blocking, unless it is
// known to need no wait. These run directly on the worker:
//   - a query of the size;
//   - a read of up to 256 KiB that is in memory, and every such read or write in tmpfs;
//   - a write of up to 256 KiB to a local disk, because it goes to memory as a rule;
//   - the opening of an existing file of a local disk, of overlayfs or in memory, if the kernel knows its path.
// If such a write or opening takes about 20 ms, another thread takes the worker over. Until that call ends, and for a
// while after, writes and openings run in ulexite::blocking.
// An operation that waits is a cancellation point until the pool's thread has begun it. Then the caller waits for its
// end, so the result is always known. On a plain thread the operations are ordinary calls.
//
// Each operation has two forms. One throws std::system_error that names the operation and the file, or
// operation_cancelled if the fiber was asked to stop. The other sets a std::error_code: the system's code,
// errc::cancelled or errc::deadline_exceeded. A closed file fails with bad_file_descriptor, a path with a NUL with
// invalid_argument. Sizes are in bytes.
//
// Any number of fibers and threads may use one file at the same time, except for close, release and a move.

#include <ulexite/base/standard.hpp>
#include <ulexite/os/calls/nowait_support.hpp>

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace ulexite::os {

// How a file is opened: a set of these. All modes except `read` need `write` too.
enum class open_mode : std::uint8_t {
  read = 1,
  write = 2,
  create = 4,     // create the file if it does not exist
  exclusive = 8,  // with create: fail with file_exists if there is one, a symbolic link too
  truncate = 16,  // empty it
  append = 32,    // every write goes to the end, also of write_at
};

// Both sets together.
constexpr open_mode operator|(open_mode a, open_mode b) noexcept {
  return static_cast<open_mode>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
// The modes that are in both sets.
constexpr open_mode operator&(open_mode a, open_mode b) noexcept {
  return static_cast<open_mode>(static_cast<unsigned>(a) & static_cast<unsigned>(b));
}

// The permissions of a new file, from which the process's umask is taken.
inline constexpr std::filesystem::perms default_permissions = static_cast<std::filesystem::perms>(0666);

// An open file. Any number of fibers may use it at the same time; each call names its offset.
class file {
 public:
  // No file: every operation fails with bad_file_descriptor.
  file() noexcept = default;
  // Opens `path`; the descriptor is close-on-exec. Throws usage_error for a contradictory mode.
  explicit file(const std::filesystem::path& path, open_mode mode = open_mode::read,
                std::filesystem::perms permissions = default_permissions);
  file(const std::filesystem::path& path, open_mode mode, std::error_code& error)
      : file(path, mode, default_permissions, error) {}
  file(const std::filesystem::path& path, open_mode mode, std::filesystem::perms permissions, std::error_code& error);
  // Takes over a descriptor that was opened elsewhere; errors name it `name`. Throws std::system_error, with
  // bad_file_descriptor, if it is negative.
  [[nodiscard]] static file adopt(int fd, std::string name);
  file(file&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)),
        reads_(other.reads_),
        writes_(other.writes_),
        name_(std::move(other.name_)) {}
  file& operator=(file&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(reads_, other.reads_);
    std::swap(writes_, other.writes_);
    std::swap(name_, other.name_);
    return *this;  // `other` closes the previous file
  }
  // Closes the descriptor, on this thread. An error of the close is lost: see close.
  ~file();

  // Reads from `offset` on until `size` bytes are read or the file ends. Returns the number of bytes. It is smaller
  // only at the end or on an error. Then it counts the bytes before the error; the throwing form does not report them.
  std::size_t read_at(void* data, std::size_t size, std::uint64_t offset, std::error_code& error);
  std::size_t read_at(void* data, std::size_t size, std::uint64_t offset);

  // Writes all of the data at `offset`; the file grows as needed. Returns the number of bytes written, fewer only on an
  // error.
  std::size_t write_at(const void* data, std::size_t size, std::uint64_t offset, std::error_code& error);
  void write_at(const void* data, std::size_t size, std::uint64_t offset);
  void write_at(std::string_view data, std::uint64_t offset) { write_at(data.data(), data.size(), offset); }

  // Writes all of the data at the end of the file, even if the end has moved. Each system call appends one piece, so
  // pieces of other writers may be between them. Returns as write_at.
  std::size_t append(const void* data, std::size_t size, std::error_code& error);
  void append(const void* data, std::size_t size);
  void append(std::string_view data) { append(data.data(), data.size()); }

  // The length of the file in bytes. For a network file, the length that this machine knows. Never waits.
  [[nodiscard]] std::uint64_t size(std::error_code& error) const;
  [[nodiscard]] std::uint64_t size() const;

  // Sets the length: cuts the file, or fills it up with zeros.
  void truncate(std::uint64_t size, std::error_code& error);
  void truncate(std::uint64_t size);

  // Returns when the written data is on the disk (fsync). The directory entry of a new file is not included.
  void sync(std::error_code& error);
  void sync();

  // Closes the file. Some file systems report only here that earlier data was lost. The file is closed in any case. A
  // second close does nothing. Not a cancellation point.
  void close(std::error_code& error);
  void close();
  // Whether it is open. Never waits.
  [[nodiscard]] bool is_open() const noexcept { return fd_ >= 0; }

  // The descriptor, which the object keeps; -1 once closed. After a change of its flags by fcntl, as to O_DIRECT,
  // use adopt(release(), name), because the object may know them already.
  [[nodiscard]] int native_handle() const noexcept { return fd_; }
  // Gives the descriptor to the caller; the file is closed.
  [[nodiscard]] int release() noexcept { return std::exchange(fd_, -1); }

 private:
  friend class directory;

  file(int fd, std::string name) noexcept : fd_(fd), name_(std::move(name)) {}
  // A descriptor that the library has opened.
  static file opened(int fd, std::string name);
  void check(std::error_code error, const char* what) const;

  int fd_ = -1;
  detail::nowait_support reads_{detail::access::read}, writes_{detail::access::write};
  std::string name_;
};

// Reads the whole content of a file, or of a pipe. It also reads files without a size, as in /proc. One call on the
// pool.
[[nodiscard]] std::string read_all(const std::filesystem::path& path, std::error_code& error);
[[nodiscard]] std::string read_all(const std::filesystem::path& path);

// Makes a file with this content, or replaces the content of an existing file. One call on the pool. An error or a
// crash may leave part of the content, unlike with replace_file.
void write_all(const std::filesystem::path& path, std::string_view data, std::error_code& error);
void write_all(const std::filesystem::path& path, std::string_view data);

// Makes a file with this content, or replaces a file as a whole. Readers see the old content or the new one, also after
// a crash. It writes another file in the same directory, syncs it and renames it. Then it syncs the directory, if that
// may be read. The other file has no name while it is written, so a killed process hardly ever leaves one, if the file
// system has O_TMPFILE and /proc is mounted; otherwise its name is .ulexite.NUMBER. The new file gets the permissions
// of the old one, and its group if the system allows it. Otherwise the group and all others get only what both had.
// Set-user-ID stays only with the same owner, set-group-ID only with the same group. Owner, ACLs and extended
// attributes are not kept. A symbolic link is replaced itself, not its target. On an error before the rename the old
// file stays. One call on the pool, which lasts until the disk has the data.
void replace_file(const std::filesystem::path& path, std::string_view data, std::error_code& error);
void replace_file(const std::filesystem::path& path, std::string_view data);

}  // namespace ulexite::os
