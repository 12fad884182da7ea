// Buffered reading and writing, over streams of every shape.

#include "net_fixture.hpp"

#include <ulexite/net/buffered.hpp>
#include <ulexite/os/pipe.hpp>
#include <ulexite/sync/task_group.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace ulexite::test {
namespace {

using net::buffered_reader;
using net::buffered_writer;

// A stream that gives its pieces one at a time; "!" is an error of its own. It takes data in portions of `portion`
// bytes, and fails once, at position `fail_at`.
class piecewise {
 public:
  explicit piecewise(std::deque<std::string> pieces) : pieces_(std::move(pieces)) {}
  explicit piecewise(std::size_t portion, std::size_t fail_at = SIZE_MAX) : portion_(portion), fail_at_(fail_at) {}

  std::size_t read_some(void* data, std::size_t size, std::error_code& error) {
    error.clear();
    ++reads;
    if (pieces_.empty()) return 0;
    std::string& next = pieces_.front();
    if (next == "!") {
      pieces_.pop_front();
      error = std::make_error_code(std::errc::timed_out);
      return 0;
    }
    const std::size_t got = next.copy(static_cast<char*>(data), size);
    next.erase(0, got);
    if (next.empty()) pieces_.pop_front();
    return got;
  }
  std::size_t write_some(const void* data, std::size_t size, std::error_code& error) {
    error.clear();
    ++writes;
    if (written.size() >= fail_at_) {
      fail_at_ = SIZE_MAX;
      error = std::make_error_code(std::errc::timed_out);
      return 0;
    }
    const std::size_t taken = std::min(size, portion_);
    written.append(static_cast<const char*>(data), taken);
    return taken;
  }
  std::size_t read_some(void* data, std::size_t size) {
    std::error_code error;
    const std::size_t got = read_some(data, size, error);
    if (error) throw std::system_error(error);
    return got;
  }
  std::size_t write_some(const void* data, std::size_t size) {
    std::error_code error;
    const std::size_t taken = write_some(data, size, error);
    if (error) throw std::system_error(error);
    return taken;
  }

  std::string written;
  int reads = 0, writes = 0;

 private:
  std::deque<std::string> pieces_;
  std::size_t portion_ = SIZE_MAX;
  std::size_t fail_at_ = SIZE_MAX;
};

std::vector<std::string> lines_of(piecewise from, std::size_t capacity = 8192) {
  std::vector<std::string> lines;
  buffered_reader in(from, capacity);
  while (const auto line = in.read_line()) lines.emplace_back(*line);
  return lines;
}

using texts = std::vector<std::string>;

TEST(BufferedReader, ReadsLinesHoweverTheyArrive) {
  const texts wanted{"one", "", "two", "three"};
  EXPECT_EQ(lines_of(piecewise({"one\n\ntwo\r\nthree"})), wanted);
  EXPECT_EQ(lines_of(piecewise({"one\n", "\ntwo\r", "\nth", "ree\n"})), wanted);
  const std::string all = "one\n\ntwo\r\nthree\n";
  std::deque<std::string> bytes;
  for (const char c : all) bytes.emplace_back(1, c);
  for (const std::size_t capacity : {1, 2, 3, 5, 8192}) EXPECT_EQ(lines_of(piecewise(bytes), capacity), wanted);
  EXPECT_EQ(lines_of(piecewise(std::deque<std::string>{})), texts{});
  EXPECT_EQ(lines_of(piecewise({"\r"})), texts{"\r"}) << "no end of a line";
}

TEST(BufferedReader, RefusesALineBeyondTheLimitAndKeepsIt) {
  piecewise from({"12345\n", "67\n"});
  buffered_reader in(from);
  std::error_code error;
  EXPECT_EQ(in.read_line(5, error), std::nullopt) << "six bytes with the end";
  EXPECT_EQ(error, std::errc::message_size);
  try {
    static_cast<void>(in.read_line(5));
    FAIL() << "must throw";
  } catch (const std::system_error& refusal) {
    EXPECT_EQ(refusal.code(), std::errc::message_size);
    EXPECT_NE(std::string(refusal.what()).find("first 5 bytes"), std::string::npos) << refusal.what();
  }
  EXPECT_EQ(in.read_line(6, error), "12345");
  EXPECT_FALSE(error);
  EXPECT_EQ(in.read_line(), "67");
}

TEST(BufferedReader, AnEndlessLineTakesNoMoreMemoryThanTheLimit) {
  std::deque<std::string> pieces(1000, std::string(1000, 'x'));
  piecewise from(std::move(pieces));
  buffered_reader in(from, 1000);
  std::error_code error;
  EXPECT_EQ(in.read_line(10'000, error), std::nullopt);
  EXPECT_EQ(error, std::errc::message_size);
  EXPECT_LE(in.buffered().size(), 32'000u);
}

TEST(BufferedReader, ReadsUpToADelimiterOfSeveralBytes) {
  piecewise from({"GET /\r\nA: b\r", "\n\r", "\nbody"});
  buffered_reader in(from, 4);
  EXPECT_EQ(in.read_until("\r\n\r\n"), "GET /\r\nA: b\r\n\r\n");
  EXPECT_EQ(in.read_until("\r\n"), "body") << "what is left at the end, without the delimiter";
  EXPECT_EQ(in.read_until("\r\n"), std::nullopt);
  EXPECT_THROW(static_cast<void>(in.read_until("")), std::invalid_argument);
}

TEST(BufferedReader, GoesOnAfterAnError) {
  piecewise from({"hal", "!", "f a line\nrest", "!"});
  buffered_reader in(from);
  EXPECT_THROW(static_cast<void>(in.read_line()), std::system_error);
  EXPECT_EQ(in.read_line(), "half a line");
  std::error_code error;
  EXPECT_EQ(in.read_line(error), std::nullopt);
  EXPECT_EQ(error, std::errc::timed_out);
  EXPECT_EQ(in.read_line(error), "rest");
  EXPECT_FALSE(error);
}

TEST(BufferedReader, IsAStreamItself) {
  piecewise from({"head\n", "0123456789", "ABC"});
  buffered_reader in(from);
  EXPECT_EQ(in.read_line(), "head");
  char part[4];
  EXPECT_EQ(in.read_some(part, 4), 4u);
  EXPECT_EQ(std::string_view(part, 4), "0123");
  char rest[100];
  EXPECT_EQ(in.read(rest, 100), 9u);
  EXPECT_EQ(std::string_view(rest, 9), "456789ABC");
  EXPECT_EQ(in.read_some(rest, 100), 0u);
  static_assert(net::readable_stream<decltype(in)>);
}

TEST(BufferedReader, LargeReadsPassTheBuffer) {
  piecewise from({std::string(5000, 'x')});
  buffered_reader in(from, 16);
  std::string into(5000, ' ');
  EXPECT_EQ(in.read(into.data(), into.size()), 5000u);
  EXPECT_EQ(into, std::string(5000, 'x'));
  EXPECT_EQ(from.reads, 1);
}

TEST(BufferedReader, PeeksAndConsumes) {
  piecewise from({"ab", "cd", "e"});
  buffered_reader in(from);
  EXPECT_EQ(in.buffered(), "");
  EXPECT_EQ(in.peek(3), "abcd");
  in.consume(1);
  EXPECT_EQ(in.buffered(), "bcd");
  EXPECT_EQ(in.peek(100), "bcde");
  in.consume(100);
  EXPECT_EQ(in.peek(), "");
}

TEST(BufferedReader, ReadsAllUpToALimit) {
  piecewise from({"abc", "def"});
  buffered_reader in(from);
  std::error_code error;
  EXPECT_EQ(in.read_all(5, error), "");
  EXPECT_EQ(error, std::errc::message_size);
  EXPECT_EQ(in.read_all(6), "abcdef");
  EXPECT_EQ(in.read_all(6), "");
}

TEST(BufferedReader, AViewOfALargeLineLivesUntilTheNextCall) {
  piecewise from({std::string(100'000, 'y') + "\n"});
  buffered_reader in(from, 10);
  const auto line = in.read_line(200'000);
  ASSERT_TRUE(line);
  EXPECT_EQ(std::count(line->begin(), line->end(), 'y'), 100'000);
  EXPECT_EQ(in.read_line(), std::nullopt);
}

TEST(BufferedWriter, CollectsSmallWrites) {
  piecewise to(SIZE_MAX);
  buffered_writer out(to, 10);
  out.write("abc");
  out.write("def");
  EXPECT_EQ(to.writes, 0);
  EXPECT_EQ(out.unsent(), 6u);
  out.write("ghijkl");
  EXPECT_EQ(to.written, "abcdefghij");
  out.flush();
  EXPECT_EQ(to.written, "abcdefghijkl");
  EXPECT_EQ(to.writes, 2);
  out.flush();
  EXPECT_EQ(to.writes, 2) << "nothing to send";
}

TEST(BufferedWriter, LargeWritesPassTheBufferInOrder) {
  piecewise to(7);
  buffered_writer out(to, 10);
  out.write("abc");
  out.write(std::string(25, 'x'));
  out.write("end");
  out.flush();
  EXPECT_EQ(to.written, "abc" + std::string(25, 'x') + "end");
}

TEST(BufferedWriter, KeepsWhatAFailedFlushHasNotSent) {
  piecewise to(4, 4);
  buffered_writer out(to, 100);
  out.write("0123456789");
  std::error_code error;
  out.flush(error);
  EXPECT_EQ(error, std::errc::timed_out);
  EXPECT_EQ(to.written, "0123");
  EXPECT_EQ(out.unsent(), 6u);
  out.write("AB");
  out.flush();
  EXPECT_EQ(to.written, "0123456789AB");
}

TEST(BufferedWriter, TellsHowMuchItTookBeforeAnError) {
  piecewise to(4, 0);
  buffered_writer out(to, 4);
  std::error_code error;
  EXPECT_EQ(out.write("ab", error), 2u);
  EXPECT_EQ(out.write("cdef", error), 2u) << "full, and the flush failed";
  EXPECT_EQ(error, std::errc::timed_out);
  EXPECT_EQ(out.write("ef", error), 2u);
  out.flush();
  EXPECT_EQ(to.written, "abcdef");
}

// As tls_stream, it reports a failure to send at the next call.
struct late_reporter {
  bool failed = false;
  std::size_t write_some(const void*, std::size_t size, std::error_code& error) {
    flush(error);
    if (error) return 0;
    failed = true;
    return size;
  }
  std::size_t write_some(const void* data, std::size_t size) {
    std::error_code error;
    return write_some(data, size, error);
  }
  void flush(std::error_code& error) {
    error = std::exchange(failed, false) ? std::make_error_code(std::errc::timed_out) : std::error_code();
  }
  void flush() {
    std::error_code error;
    flush(error);
    if (error) throw std::system_error(error);
  }
};

TEST(BufferedWriter, AFlushTellsOfAFailureThatItsStreamReportsLate) {
  late_reporter to;
  buffered_writer out(to);
  std::error_code error;
  for (const std::size_t size : {5u, 50'000u}) {  // copied, and passed on at once
    out.write(std::string(size, 'x'));
    out.flush(error);
    EXPECT_EQ(error, std::errc::timed_out);
    out.flush(error);
    EXPECT_FALSE(error);
    out.write(std::string(size, 'x'));
    EXPECT_THROW(out.flush(), std::system_error);
  }
}

class BufferedTest : public NetTest {};
ULEXITE_ON_ALL_WORKER_COUNTS(BufferedTest);

TEST_P(BufferedTest, EchoesLinesOverTcp) {
  in_runtime([] {
    auto ends = stream_pair::tcp();
    scope([&](task_group& group) {
      group.spawn([&] {
        buffered_reader in(ends.right);
        buffered_writer out(ends.right);
        while (const auto line = in.read_line()) {
          out.write(*line);
          out.write("\n");
          if (in.buffered().empty()) out.flush();
        }
        out.flush();
        ends.right.shutdown_write();
      });
      buffered_writer out(ends.left);
      for (int i = 0; i < 1000; ++i) out.write(std::to_string(i) + "\r\n");
      out.flush();
      ends.left.shutdown_write();
      buffered_reader in(ends.left);
      for (int i = 0; i < 1000; ++i) EXPECT_EQ(in.read_line(), std::to_string(i));
      EXPECT_EQ(in.read_line(), std::nullopt);
    });
  });
}

TEST_P(BufferedTest, ACancelledReadLosesNothing) {
  in_runtime([] {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    auto reader = os::pipe_reader::adopt(ends[0]);
    auto writer = os::pipe_writer::adopt(ends[1]);
    buffered_reader in(reader);
    writer.write("half");
    EXPECT_EQ(in.peek(4), "half");
    auto reading = spawn([&] { EXPECT_THROW(static_cast<void>(in.read_line()), operation_cancelled); });
    let_others_run();
    reading.request_stop();
    reading.join();
    writer.write(" a line\n");
    EXPECT_EQ(in.read_line(), "half a line");
  });
}

}  // namespace
}  // namespace ulexite::test
