// Sockets are served while fibers compute. Only progress is asked for, not how soon.

#include "abuse.hpp"

#include <array>
#include <vector>

namespace ulexite::test {
namespace {

class AbuseBusy : public AbuseTest {};
ULEXITE_ABUSE_WORKERS(AbuseBusy);

void compute_for(std::chrono::microseconds time) {
  for (const auto end = steady_clock::now() + time; steady_clock::now() < end;) detail::cpu_relax();
}

// Some clients get their echoes, sleep, and connect again.
void expect_service() {
  const service server(echo);
  task_group clients;
  for (int id = 0; id < 5; ++id)
    clients.spawn([&, id] {
      for (int connection = 0; connection < 4; ++connection) {
        auto stream = net::tcp_stream::connect(server.at());
        for (int i = 0; i < times(20); ++i) {
          const std::array<int, 3> said{id, connection, i};
          std::array<int, 3> heard{};
          stream.write(said.data(), sizeof said);
          ASSERT_EQ(stream.read(heard.data(), sizeof heard), sizeof heard);
          ASSERT_EQ(heard, said);
        }
        this_fiber::sleep_for(1ms);
      }
    });
  clients.wait();
}

TEST_P(AbuseBusy, FibersThatYieldNowAndThenLeaveRoomForSockets) {
  in_runtime([] {
    std::atomic<bool> over{false};
    task_group computing;
    for (std::size_t i = 0; i < 2 * GetParam(); ++i)
      computing.spawn([&] {
        for (; !over; this_fiber::yield()) compute_for(200us);
      });
    expect_service();
    over = true;
    computing.wait();
  });
}

// All workers but one are held by fibers that never yield.
TEST_P(AbuseBusy, HogsLeaveRoomAsLongAsOneWorkerIsLeft) {
  in_runtime([] {
    std::atomic<bool> over{false};
    std::atomic<std::size_t> holding{0};
    const std::size_t hogs = GetParam() - 1;
    task_group computing;
    for (std::size_t i = 0; i < hogs; ++i)
      computing.spawn([&] {
        ++holding;
        EXPECT_TRUE(hog_until([&] { return over.load(); }, bound)) << "nobody was served meanwhile";
      });
    wait_until([&] { return holding == hogs; });
    expect_service();
    over = true;
    computing.wait();
  });
}

// Fibers that only make system calls that never have to wait.
TEST_P(AbuseBusy, ABusyConnectionDoesNotStarveTheOthers) {
  in_runtime([] {
    std::atomic<bool> over{false};
    task_group talking;
    for (std::size_t i = 0; i < 2 * GetParam(); ++i)
      talking.spawn([&] {
        auto pair = stream_pair::unix_sockets();
        char c = 'x';
        while (!over) {
          pair.left.write(&c, 1);
          ASSERT_EQ(pair.right.read_some(&c, 1), 1u);
        }
      });
    expect_service();
    over = true;
    talking.wait();
  });
}

}  // namespace
}  // namespace ulexite::test
