// presence: members come, say something, and go, while watchers listen and the server may be stopped. A watcher hears
// of each name by turns that it is online and offline, and what it says only in between. Whatever happens to the
// network, the server ends in time, and then it knows nobody.
#include "../../examples/presence/session.hpp"
#include "world.hpp"

#include <ulexite/net/buffered.hpp>

#include <map>
#include <string>
#include <string_view>
#include <system_error>

namespace {

using namespace worlds;

const net::endpoint server_at = net::endpoint::ip("10.0.0.1", 7200);
const presence::limits bounds{.outbox = 64, .patience = 2s};

// Its connection may break at any time. Then it hears "".
class peer {
 public:
  peer() : stream_(net::tcp_stream::connect(server_at, {.timeout = 3s}, error_)) { stream_.expires_after(60s); }

  void say(std::string_view line) {
    if (!error_) stream_.write(line.data(), line.size(), error_);
  }
  std::string hear() {
    if (error_) return {};
    const auto line = lines_.read_until("\n", 100, error_);
    if (error_ || !line || !line->ends_with('\n')) return {};  // the last line may be cut
    return std::string(line->substr(0, line->size() - 1));
  }

 private:
  std::error_code error_;
  net::tcp_stream stream_;
  net::buffered_reader<net::tcp_stream> lines_{stream_};
};

void come_say_and_go(const std::string& name) {
  for (int turn = 0; turn < 2; ++turn) {
    peer member;
    member.say("JOIN " + name + "\n");
    if (member.hear() != "OK") return;
    if (choose(2) != 0) member.say("SAY hello\n");
    if (choose(2) != 0) ux::this_fiber::sleep_for(std::chrono::milliseconds(choose(30)));
  }
}

void watch() {
  peer watcher;
  std::map<std::string, bool> online;
  watcher.say("WATCH ann\nWATCH bob\n");
  for (std::string line = watcher.hear(); !line.empty() && line != "BYE"; line = watcher.hear()) {
    const std::string what = line.substr(0, line.find(' '));
    const std::string name = line.substr(what.size() + 1, 3);
    const auto known = online.find(name);
    if (what == "SAID") {
      expect(known != online.end() && known->second, "only who is online speaks");
    } else {
      expect(what == "ONLINE" || what == "OFFLINE", "a state");
      expect(known == online.end() || known->second != (what == "ONLINE"), "states by turns");
      online[name] = what == "ONLINE";
    }
  }
}

void world() {
  presence::home home{.bounds = bounds};
  net::tcp_listener listener(server_at);
  ux::task_group server, members, watchers;
  server.spawn([&] { return presence::serve(listener, home, 1 + choose(4)); });
  for (int i = 0; i < 2; ++i) watchers.spawn(watch);
  for (const char* name : {"ann", "bob", "ann"}) members.spawn([name] { come_say_and_go(name); });
  members.spawn([&] {
    switch (choose(3)) {
      case 1: disturb(server_at); break;
      case 2: {
        ux::this_fiber::sleep_for(std::chrono::milliseconds(choose(60)));
        listener.close();
        break;
      }
      default: break;
    }
  });
  members.wait();
  listener.close();
  expect(server.wait_for(20s), "the server ends in time");
  watchers.wait();
  server.wait();
  expect(home.clients.size() == 0 && home.senders.size() == 0, "all clients have left");
  expect(home.people.size() == 0, "nobody is known any more");
}

}  // namespace

int main(int argc, char** argv) { return run(argc, argv, world); }
