// A buffered_reader over a stream that reads short and fails, against a plain string of what is still to be read.
#include "fuzz.hpp"

#include <ulexite/net/buffered.hpp>

#include <string>
#include <system_error>

namespace {

using fuzz::require;

struct stream {
  std::size_t read_some(void* data, std::size_t size, std::error_code& error) {
    error.clear();
    const std::size_t choice = from.choose(16);
    if (choice == 15) {
      error = std::make_error_code(std::errc::timed_out);
      return 0;
    }
    const std::size_t got = std::min({size, from.text.size(), choice < 8 ? choice + 1 : size});
    from.text.copy(static_cast<char*>(data), got);
    from.text.remove_prefix(got);
    return got;
  }
  std::size_t read_some(void* data, std::size_t size) {
    std::error_code error;
    const std::size_t got = read_some(data, size, error);
    if (error) throw std::system_error(error);
    return got;
  }

  fuzz::input& from;
};

class check {
 public:
  explicit check(fuzz::input& from) : from_(from), rest_(from.text), in_(stream_, 1 + from.choose(20)) {}

  void step() {
    switch (from_.choose(7)) {
      case 0: return until("\n", true);
      case 1: return until("\r\n", false);
      case 2: return until("aab", false);
      case 3: return bytes(false);
      case 4: return bytes(true);
      case 5: return ahead();
      default: return all();
    }
  }

 private:
  // Nothing is lost, and nothing is there twice.
  void taken(std::string_view what) {
    require(rest_.starts_with(what), "what was read is what comes next");
    rest_.remove_prefix(what.size());
    require(std::string(in_.buffered()) + std::string(from_.text) == rest_, "the rest is still to be read");
  }

  void until(std::string_view delimiter, bool line) {
    const std::size_t limit = from_.choose(40);
    const auto found = rest_.find(delimiter);
    const std::string_view whole = rest_.substr(0, found == rest_.npos ? found : found + delimiter.size());
    std::error_code error;
    const auto read = line ? in_.read_line(limit, error) : in_.read_until(delimiter, limit, error);
    if (error == std::errc::message_size) require(whole.size() > limit, "it is over the limit");
    if (error) require(!read, "an error gives nothing");
    if (error) return taken("");
    require(whole.size() <= limit, "it is within the limit");
    require(read.has_value() == !whole.empty(), "nothing is read at the end only");
    std::string_view expected = whole;
    if (line && expected.ends_with('\n')) {
      expected.remove_suffix(1);
      if (expected.ends_with('\r')) expected.remove_suffix(1);
    }
    if (read) require(*read == expected, "up to the delimiter");
    taken(whole);
  }

  void bytes(bool exactly) {
    std::string into(from_.choose(30), '\0');
    std::error_code error;
    const std::size_t expected = std::min(into.size(), rest_.size());
    const std::size_t got =
        exactly ? in_.read(into.data(), into.size(), error) : in_.read_some(into.data(), into.size(), error);
    if (!error && exactly) require(got == expected, "as many as there are");
    if (!error && !exactly) require((got > 0) == (expected > 0), "some");
    taken(std::string_view(into).substr(0, got));
  }

  void ahead() {
    const std::size_t size = from_.choose(50);
    std::error_code error;
    const std::string_view seen = in_.peek(size, error);
    if (!error) require(seen.size() >= std::min(size, rest_.size()), "as many as there are");
    require(rest_.starts_with(seen), "what is seen is what comes next");
    const std::size_t used = std::min(from_.choose(50), in_.buffered().size());
    const std::string first(in_.buffered().substr(0, used));
    in_.consume(used);
    taken(first);
  }

  void all() {
    const std::size_t limit = from_.choose(200);
    std::error_code error;
    const std::string read = in_.read_all(limit, error);
    if (error == std::errc::message_size) require(rest_.size() > limit, "it is over the limit");
    if (!error) require(read == rest_, "all of it");
    taken(read);
  }

  fuzz::input& from_;
  stream stream_{from_};
  std::string_view rest_;
  ulexite::net::buffered_reader<stream> in_;
};

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::input from(data, size);
  check under_way(from);
  while (!from.choices.empty()) under_way.step();
  return 0;
}
