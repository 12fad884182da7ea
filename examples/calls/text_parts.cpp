#include "text_parts.hpp"

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

namespace ux = ulexite;

namespace {

constexpr std::size_t usual_size = 64 * 1024, largest_size = 1024 * 1024;  // bytes

// As in tour/words.cpp.
bool is_letter(char character) {
  return (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z');
}

// The size of the text up to the last character that is in no word.
std::size_t whole_words(std::string_view text) {
  const auto last = std::find_if(text.rbegin(), text.rend(), [](char each) { return !is_letter(each); });
  return static_cast<std::size_t>(text.rend() - last);
}

}  // namespace

void text_parts::add(const std::filesystem::path& named) {
  if (!std::filesystem::is_directory(named)) {
    ux::os::input_stream from(named);
    return add(from);
  }
  ux::os::walk(named, [&](const ux::os::walk_entry& entry) {
    if (entry.error) {
      ++totals_.unreadable;
    } else if (entry.type == std::filesystem::file_type::regular) {
      std::error_code error;
      ux::os::file readable(entry.path, ux::os::open_mode::read, error);
      if (error) {
        ++totals_.unreadable;
      } else {
        try {
          auto from = ux::os::input_stream::share(readable.native_handle(), entry.path);
          add(from);
        } catch (const ux::operation_cancelled&) {
          throw;
        } catch (const std::system_error&) {
          ++totals_.unreadable;
        }
      }
    }
  });
}

void text_parts::add(ux::os::input_stream& from) {
  ++totals_.files;
  cut(from);
}

void text_parts::cut(ux::os::input_stream& from) {
  std::string text;
  for (;;) {
    const std::size_t before = text.size();
    text.resize(before + usual_size);
    const std::size_t got = from.read_some(text.data() + before, usual_size);
    text.resize(before + got);
    totals_.bytes += got;
    if (got == 0) break;
    const std::size_t size = whole_words(text);
    std::string rest = text.substr(size);
    if (rest.size() > largest_size)
      throw std::runtime_error(from.name() + " has a word of more than " + std::to_string(largest_size) +
                               " letters, which no part can hold");
    text.resize(size);
    if (!text.empty()) send(from.name(), std::move(text));
    text = std::move(rest);
  }
  if (!text.empty()) send(from.name(), std::move(text));
}

void text_parts::send(const std::string& file, std::string text) {
  auto made = std::make_shared<source_part>();
  made->file = file;
  made->message.set_number(++totals_.parts);
  made->message.set_text(std::move(text));
  to_.send(std::move(made));
}
