// A hub for messages on topics, by lines of text, after the classic exercise in Go with a map of channels. A slow
// subscriber does not delay the others: it misses the oldest messages, and gets their number.
//
//   pubsub --port 7100
//   printf 'SUB weather\n' | nc 127.0.0.1 7100        # prints: MSG weather rain
//   printf 'PUB weather rain\n' | nc -q1 127.0.0.1 7100
//
// SUB TOPIC, UNSUB TOPIC and PUB TOPIC TEXT are answered OK. Messages arrive as MSG TOPIC TEXT, and MISSED TOPIC N
// reports a gap.

#include "../program.hpp"

#include <ulexite.hpp>

#include <CLI/CLI.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace ux = ulexite;
using namespace std::chrono_literals;

namespace {

struct arguments {
  std::string bind = "127.0.0.1";
  std::uint16_t port = 7100;
  std::size_t keep = 256;
};

using text = std::shared_ptr<const std::string>;
using topic = ux::broadcast<text>;

// Only topics with subscribers exist, and a client subscribes to few, so that clients cannot fill the memory.
class hub {
 public:
  explicit hub(std::size_t keep) : keep_(keep) {}

  void publish(const std::string& name, std::string_view what) {
    const auto to = topics_.with_lock([&](auto& topics) {
      const auto found = topics.find(name);
      return found == topics.end() ? nullptr : found->second.messages;
    });
    if (to) to->send(std::make_shared<const std::string>("MSG " + name + " " + std::string(what) + "\n"));
  }

  class subscription {
   public:
    subscription(hub& to, std::string name) : to_(&to), name_(std::move(name)), from_(to.enter(name_)) {}
    subscription(subscription&& other) noexcept
        : to_(std::exchange(other.to_, nullptr)), name_(std::move(other.name_)), from_(std::move(other.from_)) {}
    ~subscription() {
      if (to_) to_->leave(name_);
    }

    [[nodiscard]] const std::string& name() const { return name_; }
    [[nodiscard]] ux::broadcast_receiver<text>& messages() { return from_; }

   private:
    hub* to_;
    std::string name_;
    ux::broadcast_receiver<text> from_;
  };

 private:
  struct entry {
    std::shared_ptr<topic> messages;
    std::size_t subscribers = 0;
  };

  ux::broadcast_receiver<text> enter(const std::string& name) {
    return topics_.with_lock([&](auto& topics) {
      entry& found = topics[name];
      if (!found.messages) found.messages = std::make_shared<topic>(keep_);
      ++found.subscribers;
      return found.messages->subscribe();
    });
  }
  void leave(const std::string& name) {
    topics_.with_lock([&](auto& topics) {
      const auto found = topics.find(name);
      if (--found->second.subscribers == 0) topics.erase(found);
    });
  }

  const std::size_t keep_;
  ux::synchronized<std::map<std::string, entry>> topics_;
};

// One client: a fiber reads its commands, and a fiber for each of its subscriptions sends the messages.
class session {
 public:
  session(hub& messages, ux::net::tcp_stream& client) : hub_(messages), client_(client) {}

  // Its end closes the connection, because only that ends a write to a client that does not read.
  void run() try {
    const closer at_end{client_};
    const std::stop_callback at_stop(ux::this_fiber::get_stop_token(), [this]() noexcept { client_.close(); });
    ux::net::buffered_reader in(client_);
    while (const auto line = in.read_line(4096)) say(execute(*line));
  } catch (const std::system_error&) {
    ux::this_fiber::check();  // the request to stop has closed the connection
    throw;
  }

 private:
  struct closer {
    ux::net::tcp_stream& client;
    ~closer() { client.close(); }
  };

  std::string execute(std::string_view line) {
    const auto word = [&line] {
      const auto end = std::min(line.find(' '), line.size());
      const std::string_view first = line.substr(0, end);
      line.remove_prefix(std::min(end + 1, line.size()));
      return first;
    };
    const std::string_view command = word();
    const std::string name(word());
    if (name.empty()) return "ERROR \"" + std::string(command) + "\" needs a topic\n";
    if (command == "PUB") {
      hub_.publish(name, line);
    } else if (command == "SUB") {
      if (subscriptions_.contains(name)) return "OK\n";
      if (subscriptions_.size() == most_subscriptions) return "ERROR too many subscriptions\n";
      subscriptions_[name] = group_.spawn([this, to = hub::subscription(hub_, name)]() mutable { follow(to); });
    } else if (command == "UNSUB") {
      if (const auto mine = subscriptions_.find(name); mine != subscriptions_.end()) {
        mine->second.request_stop();
        subscriptions_.erase(mine);
      }
    } else {
      return "ERROR unknown command \"" + std::string(command) + "\"\n";
    }
    return "OK\n";
  }

  void follow(hub::subscription& to) try {
    std::uint64_t missed = 0;
    for (const text& message : to.messages()) {
      if (const std::uint64_t now = to.messages().missed(); now != missed) {
        say("MISSED " + to.name() + " " + std::to_string(now - missed) + "\n");
        missed = now;
      }
      say(*message);
    }
  } catch (const std::system_error&) {  // UNSUB, or the end of the connection, which run() sees too
  }

  // Writes whole lines, for all fibers of the session. UNSUB, which stops a fiber, does not end a line that has begun.
  void say(std::string_view line) {
    const std::lock_guard lock(saying_);
    ux::this_fiber::check();
    const ux::shield whole_line;
    client_.write(line);
  }

  static constexpr std::size_t most_subscriptions = 50;  // each keeps `keep` lines of up to 4 KiB

  hub& hub_;
  ux::net::tcp_stream& client_;
  ux::mutex saying_;
  std::map<std::string, ux::join_handle<>> subscriptions_;
  ux::task_group group_{ux::on_error::keep_going};
};

void serve(const arguments& given, examples::stop_signals& signals) {
  hub messages(given.keep);
  ux::net::tcp_listener listener(ux::net::endpoint::ip(given.bind, given.port));
  std::fprintf(stderr, "listening on %s\n", listener.local_endpoint().str().c_str());
  auto stopper = ux::spawn([&] {
    signals.wait();
    listener.close();
  });
  ux::task_group connections;
  listener.serve(connections, [&](ux::net::tcp_stream& client) { session(messages, client).run(); },
                 {.drain_time = 1s});
  stopper.get();
}

}  // namespace

int main(int argc, char** argv) {
  arguments given;
  const auto describe = [&](CLI::App& app) {
    app.add_option("--bind", given.bind, "Address to listen on")->capture_default_str();
    app.add_option("--port", given.port, "Port to listen on; 0: any")->capture_default_str();
    app.add_option("--keep", given.keep, "Messages of a topic that a slow subscriber may be behind")
        ->check(CLI::Range(1, 1'000'000))
        ->capture_default_str();
  };
  return examples::run_program(argc, argv, "pubsub", "A hub that passes lines from publishers to subscribers.",
                               describe, [&](examples::stop_signals& signals, const ux::runtime_options& options) {
                                 ux::runtime(options).run([&] { serve(given, signals); });
                                 return 0;
                               });
}
