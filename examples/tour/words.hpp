#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace tour {

// How often each word occurs.
class word_counts {
 public:
  void add(std::string_view word, std::uint64_t times = 1);
  void merge(const word_counts& other);

  [[nodiscard]] auto begin() const noexcept { return counts_.begin(); }
  [[nodiscard]] auto end() const noexcept { return counts_.end(); }
  [[nodiscard]] std::size_t size() const noexcept { return counts_.size(); }
  friend bool operator==(const word_counts&, const word_counts&) = default;

 private:
  struct hash : std::hash<std::string_view> {
    using is_transparent = void;  // a word is looked up before a string is made of it
  };
  std::unordered_map<std::string, std::uint64_t, hash, std::equal_to<>> counts_;
};

// The content of a file. `fingerprint` is the sum of its words' hashes.
struct file_count {
  std::uint64_t bytes = 0, words = 0, fingerprint = 0;
  friend bool operator==(const file_count&, const file_count&) = default;
};

// Cuts the text of one file, in pieces of any size, into words. A word is a run of ASCII letters; upper case counts as
// lower case.
class tokenizer {
 public:
  explicit tokenizer(word_counts& into) noexcept : into_(into) {}
  void feed(std::string_view piece);
  // The file has ended.
  [[nodiscard]] file_count finish();

 private:
  void end_word();

  word_counts& into_;
  std::string word_;  // the beginning of the present word
  file_count count_;
};

}  // namespace tour
