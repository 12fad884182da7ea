#include "seat.hpp"

#include "word_count.grpc.pb.h"

#include <ulexite/interop/grpc.hpp>

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include <charconv>
#include <csignal>
#include <cstdio>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace ux = ulexite;
namespace rpc = ulexite::rpc;
using namespace std::chrono_literals;
using calls::Counts, calls::Part;

namespace {

constexpr std::ptrdiff_t window = 4;  // parts that a worker may have and not have answered
constexpr unsigned most_failures = 3;

// A process of this program, with --worker.
class worker_process {
 public:
  // Waits until it listens, or has failed to.
  worker_process()
      : process_({.arguments = {"/proc/self/exe", "--worker"},
                  .in = ux::os::stdio::pipe,
                  .out = ux::os::stdio::pipe,
                  .own_group = true}) {  // so that Ctrl-C reaches only the coordinator
    ux::net::buffered_reader lines(process_.out());
    const auto line = ux::try_for(30s, [&] { return lines.read_line(); });
    if (!line || !*line) return;
    const std::string_view text = **line;
    std::from_chars(text.data(), text.data() + text.size(), port_);
  }

  [[nodiscard]] pid_t id() const noexcept { return process_.id(); }
  [[nodiscard]] bool listens() const noexcept { return port_ != 0; }
  [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

  // Lets it end by itself, or kills it.
  void end() {
    process_.in().close();
    if (!process_.wait_for(5s)) process_.kill(SIGKILL);
  }
  // Kills it if it still runs, and returns how it ended.
  ux::os::exit_status ended() {
    if (const auto status = process_.wait_for(100ms)) return *status;
    process_.kill(SIGKILL);
    return process_.wait();
  }

 private:
  ux::os::process process_;
  int port_ = 0;
};

// Without a proxy that the environment names, because a worker is on this machine.
std::shared_ptr<grpc::Channel> channel_to(const std::string& address) {
  grpc::ChannelArguments direct;
  direct.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), direct);
}

}  // namespace

// One stream to one worker. A fiber sends, another one receives.
class seat::conversation {
 public:
  conversation(seat& of, const std::string& address)
      : of_(of),
        stub_(calls::WordCount::NewStub(channel_to(address))),
        stream_(context_, [&](auto* reactor) { stub_->async()->Count(&context_, reactor); }),
        again_(of.unanswered_),
        room_(window - std::ssize(again_)),
        to_come_(std::ssize(again_)) {}

  // Returns an empty text when all parts are answered, otherwise why the worker is given up.
  std::string run() {
    ux::scope([&](ux::task_group& both) {
      both.spawn([&] { send(); });
      receive();
      both.request_stop();  // the sender may wait for a part
    });
    if (!late_.empty()) return late_;
    if (sent_all_ && of_.unanswered_.empty()) return {};
    return "the stream ended: " + stream_.finish().error_message();
  }

 private:
  void send() {
    for (const part_ptr& each : again_)
      if (!stream_.write(each->message)) return to_come_.release();
    for (;;) {
      room_.acquire();
      part_ptr next = of_.from_.receive().value_or(nullptr);
      if (!next) break;
      {
        const std::lock_guard lock(mutex_);
        of_.unanswered_.push_back(next);
      }
      to_come_.release();
      if (!stream_.write(next->message)) return to_come_.release();
    }
    sent_all_ = true;
    stream_.writes_done();
    to_come_.release();
  }

  void receive() {
    for (Counts counts;;) {
      to_come_.acquire();
      const auto more = ux::try_for(of_.patience_, [&] { return stream_.read(counts); });
      if (!more) late_ = "it has not answered for " + std::to_string(of_.patience_.count()) + " ms";
      if (!more.value_or(false)) return;
      const std::lock_guard lock(mutex_);
      if (of_.unanswered_.empty() || of_.unanswered_.front()->message.number() != counts.number())
        throw std::runtime_error("a worker has answered part " + std::to_string(counts.number()) + " out of turn");
      of_.unanswered_.pop_front();
      for (const auto& [word, times] : counts.words()) of_.words_.add(word, times);
      ++of_.answered_;
      room_.release();
    }
  }

  seat& of_;
  grpc::ClientContext context_;
  const std::unique_ptr<calls::WordCount::Stub> stub_;
  rpc::client_reader_writer<Part, Counts> stream_;
  const std::deque<part_ptr> again_;  // what another worker has not answered
  ux::mutex mutex_;                   // guards of_.unanswered_
  ux::counting_semaphore<> room_;     // in the window
  ux::counting_semaphore<> to_come_;  // answers, or the end
  bool sent_all_ = false;
  std::string late_;
};

void seat::run() {
  for (unsigned failures = 0;;) {
    worker_process worker;
    std::fprintf(stderr, "calls: worker %u is process %d\n", number_, static_cast<int>(worker.id()));
    const std::uint64_t before = answered_;
    const std::string reason =
        worker.listens() ? conversation(*this, worker.address()).run() : "it has not begun to listen";
    if (reason.empty()) return worker.end();
    failures = answered_ > before ? 1 : failures + 1;
    ++replaced_;
    sent_again_ += unanswered_.size();
    const std::string why = reason + "; " + to_string(worker.ended());
    std::fprintf(stderr, "calls: worker %u, process %d, is replaced, and %zu parts are sent again: %s\n", number_,
                 static_cast<int>(worker.id()), unanswered_.size(), why.c_str());
    if (failures == most_failures)
      throw std::runtime_error("worker " + std::to_string(number_) + " was replaced " + std::to_string(failures) +
                               " times without an answer" +
                               (unanswered_.empty() ? "" : ", the last part is of " + unanswered_.front()->file) +
                               "; last: " + why);
  }
}
