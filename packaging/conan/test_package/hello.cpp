#include <ulexite.hpp>

#include <iostream>
#include <string>

namespace ux = ulexite;

int main() {
  ux::run([] {
    ux::channel<std::string> greetings;
    ux::task_group senders;
    for (int i = 0; i < 10'000; ++i) senders.spawn([&, i] { greetings.send("hello from fiber " + std::to_string(i)); });
    auto closer = ux::spawn([&] {
      senders.wait();
      greetings.close();
    });
    std::size_t letters = 0;
    for (const std::string& greeting : greetings) letters += greeting.size();
    closer.join();
    std::cout << letters << " letters from 10,000 fibers\n";
  });
}
