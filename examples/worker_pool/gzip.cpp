#include "gzip.hpp"

#include <ulexite/os/standard_streams.hpp>
#include <ulexite/runtime/this_fiber.hpp>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <zlib.h>

#include <cerrno>
#include <stdexcept>
#include <system_error>
#include <vector>

namespace {

constexpr std::size_t block_size = 64 * 1024;

// A file with a temporary name, in the folder of the final file.
class unfinished_file {
 public:
  explicit unfinished_file(const std::string& final_path) : final_path_(final_path), path_(final_path + ".XXXXXX") {
    fd_ = ::mkostemp(path_.data(), O_CLOEXEC);
    if (fd_ < 0) fail(errno);
  }
  unfinished_file(const unfinished_file&) = delete;
  unfinished_file& operator=(const unfinished_file&) = delete;
  ~unfinished_file() {
    ::close(fd_);
    ::unlink(path_.c_str());
  }

  void write(const char* data, std::size_t size) {
    for (std::size_t done = 0; done < size;) {
      const ssize_t wrote = ::write(fd_, data + done, size - done);
      if (wrote < 0) fail(errno);
      done += static_cast<std::size_t>(wrote);
    }
  }

  // Gives it the permissions and its final name. Replaces nothing.
  void finish(mode_t permissions) {
    if (::fchmod(fd_, permissions) != 0 || ::link(path_.c_str(), final_path_.c_str()) != 0) fail(errno);
  }

 private:
  [[noreturn]] void fail(int error) const {
    throw std::system_error(error, std::system_category(), "cannot write " + final_path_);
  }

  std::string final_path_, path_;
  int fd_ = -1;
};

// zlib's compressor, and where its output goes.
class compressor {
 public:
  explicit compressor(unfinished_file& to) : to_(to), out_(block_size) {
    constexpr int gzip_format = 15 + 16;  // the largest window, and a gzip header
    if (deflateInit2(&zlib_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, gzip_format, 8, Z_DEFAULT_STRATEGY) != Z_OK)
      throw std::runtime_error("zlib could not be started");
  }
  compressor(const compressor&) = delete;
  compressor& operator=(const compressor&) = delete;
  ~compressor() { deflateEnd(&zlib_); }

  // Z_FINISH with the last of the input, else Z_NO_FLUSH. Returns the number of bytes written.
  std::uint64_t put(std::vector<char>& data, std::size_t size, int flush) {
    zlib_.next_in = reinterpret_cast<Bytef*>(data.data());
    zlib_.avail_in = static_cast<uInt>(size);
    std::uint64_t written = 0;
    do {
      zlib_.next_out = reinterpret_cast<Bytef*>(out_.data());
      zlib_.avail_out = static_cast<uInt>(out_.size());
      deflate(&zlib_, flush);
      to_.write(out_.data(), out_.size() - zlib_.avail_out);
      written += out_.size() - zlib_.avail_out;
    } while (zlib_.avail_out == 0);
    return written;
  }

 private:
  unfinished_file& to_;
  std::vector<char> out_;
  z_stream zlib_{};
};

}  // namespace

gzip_result gzip_file(const std::string& from, const std::string& to) {
  ulexite::os::input_stream source(from);
  unfinished_file target(to);
  compressor zlib(target);
  gzip_result result;
  std::vector<char> block(block_size);
  while (const std::size_t got = source.read_some(block.data(), block.size())) {
    result.read += got;
    result.written += zlib.put(block, got, Z_NO_FLUSH);
    ulexite::this_fiber::yield();  // compressing is all computation: others of this worker get their turn here
  }
  result.written += zlib.put(block, 0, Z_FINISH);
  struct stat about{};
  if (::fstat(source.native_handle(), &about) != 0)
    throw std::system_error(errno, std::system_category(), "cannot look at " + from);
  target.finish(about.st_mode & 0777);  // as gzip
  return result;
}
