// redis_counter: its pool of connections and its counters, with kv_server as redis. Confirmed counts are present;
// unknown counts were counted once at most.
#include "../../examples/kv_server/session.hpp"
#include "../../examples/redis_counter/counters.hpp"
#include "world.hpp"

#include <spdlog/spdlog.h>

#include <map>
#include <set>
#include <string>

namespace {

using namespace worlds;

const net::endpoint redis_at = net::endpoint::ip("10.0.0.1", 6379);

void world(bool bad_network) {
  kv_server::database home;
  const kv_server::session_limits limits;
  struct tally {
    long asked = 0, counted = 0, unknown = 0;
    std::set<std::int64_t> answers;
  };
  std::map<std::string, tally> tallies{{"left", {}}, {"right", {}}};
  net::tcp_listener listener(redis_at);
  ux::task_group server, visitors;
  server.spawn([&] {
    ux::task_group connections;
    listener.serve(connections, [&](net::tcp_stream& client) { attend(client, home, limits); },
                   {.drain_time = 2s, .on_error = [](const net::endpoint&, const std::exception_ptr&) {}});
  });
  {
    ux::redis::pool pool(redis_at, {.size = 1 + choose(2), .connection = {.patience = 2s}});
    redis_counter::counters counters(pool);
    for (int i = 0; i < 3; ++i)
      visitors.spawn([&, i] {
        for (int turn = 0; turn < 2; ++turn) {
          const std::string name = (i + turn) % 2 == 0 ? "left" : "right";
          tally& mine = tallies[name];
          ++mine.asked;
          try {
            const ux::deadline_scope patience(1s);
            const std::int64_t value = counters.add(name, 1);
            expect(value <= mine.asked, "no more than was asked for");
            expect(mine.answers.insert(value).second, "another number each time");
            ++mine.counted;
          } catch (const redis_counter::failure& failed) {
            using kind = redis_counter::failure;
            expect(failed.what_kind != kind::refused && failed.what_kind != kind::unfit, "no refusal");
            if (failed.what_kind == kind::broken || failed.what_kind == kind::late) ++mine.unknown;
          }
        }
      });
    const bool disturbed = choose(2) != 0;
    visitors.spawn([&] {
      if (disturbed) disturb(redis_at);
    });
    visitors.wait();
    for (const auto& [name, of] : tallies)
      if (!bad_network && !disturbed) expect(of.counted == of.asked, "every visit is counted");
  }
  listener.close();
  server.wait();
  for (const auto& [name, of] : tallies) {
    const std::string key = "counter:" + name;
    kv_server::store::reader look(home.data, kv_server::store::shard_of(key));
    const auto* const entry = look.find(key);
    const long last = entry ? std::stol(entry->value) : 0;
    expect(last >= of.counted, "nothing that was counted is lost");
    expect(last <= of.counted + of.unknown, "nothing is counted twice, and nothing that was said not to be");
  }
}

}  // namespace

int main(int argc, char** argv) {
  spdlog::set_level(spdlog::level::off);
  return run(argc, argv, [] { world(false); }, [] { world(true); });
}
