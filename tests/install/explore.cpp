// A user's test: two fibers lose an update, and the exploration finds it.
#include <ulexite.hpp>
#include <ulexite/testing/explore.hpp>

int main() {
  const auto found = ulexite::testing::find_failure({}, [] {
    ulexite::channel<int> number(1);
    number.send(0);
    ulexite::task_group both;
    for (int i = 0; i < 2; ++i)
      both.spawn([&] {
        const int read = *number.receive();
        number.send(read + 1);
      });
    const int last = *number.receive();
    both.wait();
    ulexite::testing::expect(last == 2, "both updates");
  });
  return found.failure ? 0 : 1;
}
