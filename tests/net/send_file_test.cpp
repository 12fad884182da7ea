// Files over sockets.

#include "net_fixture.hpp"

#include "support/waiting.hpp"

#include <ulexite/os/file.hpp>
#include <ulexite/sync/task_group.hpp>

#include <gtest/gtest.h>

#include <csignal>
#include <cstdint>
#include <limits>
#include <string>

namespace ulexite::test {
namespace {

class SendFileTest : public NetTest {
 protected:
  SendFileTest() : path_(scratch_path("send_file")) {
    for (int i = 0; content_.size() < 1'000'000; ++i) content_ += std::to_string(i) + " ";
    std::FILE* const made = std::fopen(path_.c_str(), "w");
    std::fwrite(content_.data(), 1, content_.size(), made);
    std::fclose(made);
  }
  ~SendFileTest() override { std::filesystem::remove(path_); }

  const std::string path_;
  std::string content_;
};
ULEXITE_ON_ALL_WORKER_COUNTS(SendFileTest);

TEST_P(SendFileTest, SendsAllOfItOrAPart) {
  in_runtime([&] {
    for (auto make : {stream_pair::tcp, stream_pair::unix_sockets}) {
      auto ends = make();
      const os::file from(path_);
      ::posix_fadvise(from.native_handle(), 0, 0, POSIX_FADV_DONTNEED);
      scope([&](task_group& group) {
        group.spawn([&] {
          EXPECT_EQ(ends.left.send_file(from.native_handle(), 0, content_.size()), content_.size());
          EXPECT_EQ(ends.left.send_file(from.native_handle(), 100, 7), 7u);
          EXPECT_EQ(ends.left.send_file(from.native_handle(), content_.size() - 3, 10), 3u) << "up to the end";
          EXPECT_EQ(ends.left.send_file(from.native_handle(), content_.size() + 3, 10), 0u);
          ends.left.shutdown_write();
        });
        EXPECT_EQ(read_all(ends.right), content_ + content_.substr(100, 7) + content_.substr(content_.size() - 3));
      });
    }
  });
}

TEST_P(SendFileTest, FailsAsAWriteDoesAndRaisesNoSignal) {
  in_runtime([&] {
    auto ends = stream_pair::unix_sockets();
    const os::file from(path_);
    ends.right.close();
    std::error_code error;
    EXPECT_EQ(ends.left.send_file(from.native_handle(), 0, 10, error), 0u);
    EXPECT_EQ(error, std::errc::broken_pipe);
    EXPECT_THROW(ends.left.send_file(from.native_handle(), 0, 10), std::system_error);
    ends.left.close();
    ends.left.send_file(from.native_handle(), 0, 10, error);
    EXPECT_EQ(error, std::errc::bad_file_descriptor);
    auto others = stream_pair::unix_sockets();
    others.left.send_file(-1, 0, 10, error);
    EXPECT_EQ(error, std::errc::bad_file_descriptor);
  });
}

TEST_P(SendFileTest, CountsWhatItSentBeforeItWasCut) {
  in_runtime([&] {
    auto ends = stream_pair::unix_sockets();
    const os::file from(path_);
    std::error_code error;
    std::size_t sent = 0;
    for (std::chrono::milliseconds time = 20ms; sent == 0 && time < bound; time *= 2) {  // it may pass before the first
      ends.left.writes_expire_after(time);
      sent = ends.left.send_file(from.native_handle(), 0, content_.size(), error);
      EXPECT_EQ(error, std::errc::timed_out);
    }
    EXPECT_GT(sent, 0u);
    EXPECT_LT(sent, content_.size());
    ends.left.close();
    EXPECT_EQ(read_all(ends.right), content_.substr(0, sent));
  });
}

// The end of the file needs no room in a socket that is nearly full.
TEST_P(SendFileTest, EndsWithTheFileThoughThePeerDoesNotRead) {
  in_runtime([&] {
    const os::file from(path_);
    std::error_code error;
    std::size_t room = 0;
    for (std::chrono::milliseconds time = 20ms; room == 0 && time < bound; time *= 2) {
      auto full = stream_pair::unix_sockets();
      full.left.writes_expire_after(time);
      room = full.left.send_file(from.native_handle(), 0, content_.size(), error);
    }
    const std::size_t rest = room * 4 / 5;
    auto ends = stream_pair::unix_sockets();
    ends.left.writes_expire_after(bound);
    EXPECT_EQ(ends.left.send_file(from.native_handle(), content_.size() - rest, SIZE_MAX, error), rest);
    EXPECT_FALSE(error) << error.message();
    ends.left.close();
    EXPECT_EQ(read_all(ends.right), content_.substr(content_.size() - rest));
  });
}

// The system cannot say whether /proc, or a file of another machine or process, answers without a wait.
TEST_P(SendFileTest, AFileThatMayWaitIsReadOnThePool) {
  run_and_leave_nothing({.threads = GetParam(), .blocking_threads = 1}, [] {
    auto ends = stream_pair::unix_sockets();
    os::file from("/proc/version");
    std::string content(1000, '\0');
    content.resize(from.read_at(content.data(), content.size(), 0));
    busy_pool busy;
    auto sending = spawn([&] { return ends.left.send_file(from.native_handle(), 2, 1'000'000); });
    EXPECT_TRUE(waits_for_the_pool(sending));
    busy.end();
    EXPECT_EQ(sending.get(), content.size() - 2);
    ends.left.close();
    EXPECT_EQ(read_all(ends.right), content.substr(2));
  });
}

TEST_P(SendFileTest, RefusesOffsetsThatNoFileHas) {
  in_runtime([&] {
    auto ends = stream_pair::tcp();
    const os::file from(path_);
    std::error_code error;
    EXPECT_EQ(ends.left.send_file(from.native_handle(), ~std::uint64_t{1}, 2, error), 0u);
    EXPECT_EQ(error, std::errc::invalid_argument);
    EXPECT_EQ(::lseek(from.native_handle(), 0, SEEK_CUR), 0);
    const auto last = static_cast<std::uint64_t>(std::numeric_limits<off_t>::max());
    EXPECT_EQ(ends.left.send_file(from.native_handle(), last, 2, error), 0u);
    EXPECT_FALSE(error) << error;
  });
}

}  // namespace
}  // namespace ulexite::test
