// Metrics, JSON and traces do not follow the locale and the flags of their stream, and tell of its failures.

#include "support/waiting.hpp"

#include <ulexite/runtime/worker/inspection.hpp>
#include <ulexite/sync/event.hpp>

#include <functional>
#include <locale>
#include <sstream>
#include <streambuf>
#include <string>

namespace {

using namespace ulexite;
using namespace ulexite::test;

using writer = std::function<void(const runtime&, std::ostream&)>;
const writer all_writers[] = {
    [](const runtime& rt, std::ostream& out) { rt.dump(out); },
    [](const runtime& rt, std::ostream& out) { rt.dump_json(out); },
    [](const runtime& rt, std::ostream& out) { rt.write_prometheus(out); },
    [](const runtime& rt, std::ostream& out) { rt.write_trace(out); },
};

class PlainStream : public testing::Test {
 protected:
  PlainStream() : rt_({.threads = 1, .measure = true}) {
    rt_.start_trace();
    rt_.run([] {
      for (int i = 0; i < 1500; ++i) spawn([] {}).join();
    });
    rt_.stop_trace();
    wait_until_all_wait(rt_);
  }
  runtime rt_;
};

// As of a country in which 1234.5 is written 1'234,5.
struct other_digits : std::numpunct<char> {
  char do_thousands_sep() const override { return '\''; }
  char do_decimal_point() const override { return ','; }
  std::string do_grouping() const override { return "\3"; }
};

// Times and counts differ from one writing to the next, so each number, with its point, is a '#'.
std::string shape_of(const std::ostringstream& text) {
  std::string shape;
  for (const char each : text.str()) {
    const bool is_number = (each >= '0' && each <= '9') || each == '.';
    if (!is_number) shape += each;
    if (is_number && !shape.ends_with('#')) shape += '#';
  }
  return shape;
}

TEST_F(PlainStream, TheLocaleAndTheFlagsHaveNoEffect) {
  for (const writer& write : all_writers) {
    std::ostringstream usual, other;
    other.imbue(std::locale(std::locale::classic(), new other_digits));
    other << std::hex << std::showbase;
    const auto flags = other.flags();
    write(rt_, usual);
    write(rt_, other);
    EXPECT_EQ(other.str().find('\''), std::string::npos);
    EXPECT_EQ(shape_of(other), shape_of(usual));
    EXPECT_EQ(other.flags(), flags);
    EXPECT_EQ(other.precision(), 6);
    other.str("");
    other << 4096;
    EXPECT_EQ(other.str(), "0x1'000");
  }
}

// Takes some characters, and then no more.
class full : public std::streambuf {
 public:
  explicit full(std::size_t room) : room_(room) {}

 private:
  int overflow(int) override { return room_ > 0 ? (--room_, 0) : std::char_traits<char>::eof(); }
  std::streamsize xsputn(const char*, std::streamsize size) override {
    const auto taken = std::min<std::streamsize>(size, static_cast<std::streamsize>(room_));
    room_ -= static_cast<std::size_t>(taken);
    return taken;
  }
  std::size_t room_;
};

TEST_F(PlainStream, AFullStreamIsTold) {
  for (const writer& write : all_writers) {
    std::ostringstream whole;
    write(rt_, whole);
    for (std::size_t room = 0; room < std::min<std::size_t>(whole.str().size(), 400); room += 37) {
      full buffer(room), silent(room);
      std::ostream out(&buffer), quiet(&silent);
      out.exceptions(std::ios::badbit | std::ios::failbit);
      EXPECT_THROW(write(rt_, out), std::ios_base::failure) << room;
      write(rt_, quiet);
      EXPECT_TRUE(quiet.bad());
    }
    EXPECT_GT(whole.str().size(), 100u);
  }
}

TEST(CoarseTime, AWaitThatBeginsAfterTheLookHasNoTime) {
  EXPECT_EQ(detail::waited_since(1000, 1500), 500u);
  EXPECT_EQ(detail::waited_since(1001, 1000), 0u);
  EXPECT_EQ(detail::waited_since(4'294'967'295u, 5), 6u);  // the clock's lower half has begun again
}

}  // namespace
