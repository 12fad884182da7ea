#pragma once

#include "word_count.pb.h"

#include <ulexite.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

// A part, and the file that it is from. Shared, because its worker may end while gRPC sends it.
struct source_part {
  std::string file;
  calls::Part message;
};
using part_ptr = std::shared_ptr<const source_part>;

// What was read, or could not be.
struct read_totals {
  std::uint64_t files = 0, parts = 0, bytes = 0;
  std::uint64_t unreadable = 0;  // below a directory
};

// Cuts texts into parts of some 64 KiB, between words, and sends them to a channel.
class text_parts {
 public:
  explicit text_parts(ulexite::channel<part_ptr>& to) noexcept : to_(to) {}

  // The file, or all regular files below the directory. A file that is named here must be readable; below a directory
  // others are counted. Waits for room in the channel. A cancellation point. Throws std::system_error, and
  // std::runtime_error if a word is longer than a part may be.
  void add(const std::filesystem::path& named);
  // All of a stream.
  void add(ulexite::os::input_stream& from);

  [[nodiscard]] const read_totals& totals() const noexcept { return totals_; }

 private:
  void cut(ulexite::os::input_stream& from);
  void send(const std::string& file, std::string text);

  ulexite::channel<part_ptr>& to_;
  read_totals totals_;
};
