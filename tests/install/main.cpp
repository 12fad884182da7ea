// A program as a user would write it: its success says that the installed headers and the library belong together.
#include <ulexite.hpp>

#include <cstdio>

namespace {

int sum_of_squares(int count) {
  ulexite::channel<int> squares(4);
  auto producer = ulexite::spawn([&] {
    for (int i = 1; i <= count; ++i) squares.send(i * i);
    squares.close();
  });
  int sum = 0;
  while (auto square = squares.receive()) sum += *square;
  producer.join();
  return sum;
}

}  // namespace

int main() {
  const int sum = ulexite::run([] { return sum_of_squares(10); });
  std::printf("the sum is %d\n", sum);
  return sum == 385 ? 0 : 1;
}
