// presence with many clients at once, over the streams of a simulated network, because a process may not have so many
// descriptors: world_presence_crowd [CLIENTS]. It prints what a client costs while it is idle. Then each joins and
// watches one of some stars, and the stars speak.
#include "../../examples/presence/session.hpp"
#include "world.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace worlds;

// The memory of the process.
std::size_t resident() {
  std::size_t all = 0, pages = 0;
  std::ifstream("/proc/self/statm") >> all >> pages;
  return pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

bool hears(net::tcp_stream& client, std::string_view expected) {
  std::string heard(expected.size(), '\0');
  client.read(heard.data(), heard.size());
  return heard == expected;
}

// Few fibers are runnable at a time, because the controller of a run asks about each of them at each step.
void crowd(std::size_t count) {
  constexpr std::size_t followers = 500;
  presence::home home;
  std::vector<net::tcp_stream> clients, servers;
  for (std::size_t i = 0; i < count; ++i) {
    auto [mine, theirs] = ux::testing::stream_pair();
    clients.push_back(std::move(mine));
    servers.push_back(std::move(theirs));
  }
  const auto ask = [&](std::size_t client, const std::string& question, std::string_view answer) {
    clients[client].write(question);
    expect(hears(clients[client], answer), "an answer");
  };
  const auto star_of = [](std::size_t client) { return "star" + std::to_string(1'000'000 + client / followers); };

  const std::size_t none = resident();
  for (std::size_t i = 0; i < count; ++i) {
    home.clients.spawn(presence::attend, std::move(servers[i]), std::ref(home));
    ask(i, "PING\n", "PONG\n");
  }
  const std::size_t idle = (resident() - none) / count;
  for (std::size_t i = 0; i < count; ++i)
    ask(i, "JOIN c" + std::to_string(i) + "\nWATCH " + star_of(i) + "\n", "OK\nOFFLINE " + star_of(i) + "\n");
  const std::size_t watching = (resident() - none) / count;
  std::printf("%zu clients: %zu bytes for an idle one, %zu once it has joined and watches\n", count, idle, watching);
  expect(idle < 2500, "an idle client costs little");

  for (std::size_t first = 0; first < count; first += followers) {
    auto [star, theirs] = ux::testing::stream_pair();
    home.clients.spawn(presence::attend, std::move(theirs), std::ref(home));
    star.write("JOIN " + star_of(first) + "\nSAY hello\n");
    expect(hears(star, "OK\nOK\n"), "the star's replies");
    const std::string news = "ONLINE " + star_of(first) + "\nSAID " + star_of(first) + " hello\n";
    for (std::size_t i = first; i < std::min(first + followers, count); ++i) {
      expect(hears(clients[i], news), "the star's words");
      clients[i].close();
    }
    ux::this_fiber::sleep_for(1ms);  // until all of them have left
  }
  home.clients.wait();
  home.senders.wait();
  expect(home.people.size() == 0, "nobody is known any more");
}

}  // namespace

int main(int argc, char** argv) try {
  const std::size_t count = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 20'000;
  const auto done = ux::testing::explore({.schedules = 1, .strategy = "cooperative", .max_steps = 1'000'000'000},
                                         [count] { crowd(count); });
  std::printf("%.1f s\n", std::chrono::duration<double>(done.time).count());
  return 0;
} catch (const ux::testing::schedule_failed& failed) {
  std::printf("%s\n", failed.what());
  return 1;
}
