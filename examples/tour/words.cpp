#include "words.hpp"

#include <array>

namespace tour {
namespace {

// The lower-case letter for each character that is a letter, 0 for every other. Not tolower(): it asks the locale.
constexpr std::array<char, 256> letters = [] {
  std::array<char, 256> table{};
  for (unsigned char letter = 'a'; letter <= 'z'; ++letter)
    table[letter] = table[letter - 'a' + 'A'] = static_cast<char>(letter);
  return table;
}();

}  // namespace

void word_counts::add(std::string_view word, std::uint64_t times) {
  const auto known = counts_.find(word);
  if (known != counts_.end())
    known->second += times;
  else
    counts_.emplace(word, times);
}

void word_counts::merge(const word_counts& other) {
  for (const auto& [word, times] : other) add(word, times);
}

void tokenizer::feed(std::string_view piece) {
  count_.bytes += piece.size();
  for (const char character : piece) {
    const char letter = letters[static_cast<unsigned char>(character)];
    if (letter != 0)
      word_.push_back(letter);
    else if (!word_.empty())
      end_word();
  }
}

file_count tokenizer::finish() {
  if (!word_.empty()) end_word();
  return count_;
}

void tokenizer::end_word() {
  ++count_.words;
  count_.fingerprint += std::hash<std::string_view>()(word_);
  into_.add(word_);
  word_.clear();
}

}  // namespace tour
