// examples/service.hpp: a stuck worker feeds no watchdog. Everything else is tested with programs, in deploy.py.

#include "../../examples/service.hpp"

#include "support/runtime_fixture.hpp"

#include <chrono>
#include <cstdlib>
#include <string>
#include <string_view>

#include <sys/socket.h>
#include <unistd.h>

namespace {

using namespace ulexite;
using namespace ulexite::test;

class ServiceWatchdog : public RuntimeTest {};

TEST_F(ServiceWatchdog, IsNotFedWhileAllWorkersAreStuck) {
  const std::string name = "@ulexite-watchdog-" + std::to_string(::getpid());
  const net::udp_socket manager(net::endpoint::local(name));
  const auto fed = [&] {  // whether it was since the last call
    char text[64];
    bool any = false;
    for (ssize_t size; (size = ::recv(manager.native_handle(), text, sizeof text, MSG_DONTWAIT)) > 0; any = true)
      EXPECT_EQ(std::string_view(text, static_cast<std::size_t>(size)), "WATCHDOG=1");
    return any;
  };
  ::setenv("NOTIFY_SOCKET", name.c_str(), 1);
  ::setenv("WATCHDOG_USEC", "20000", 1);
  examples::service_manager service;
  make(1).run([&] {
    task_group helpers;
    helpers.spawn([&] { service.feed_watchdog(); });
    while (!fed()) this_fiber::sleep_for(1ms);
    for (const auto begin = std::chrono::steady_clock::now(); std::chrono::steady_clock::now() < begin + 300ms;) {
    }
    EXPECT_FALSE(fed());
    while (!fed()) this_fiber::sleep_for(1ms);  // the worker goes on
    helpers.request_stop();
    helpers.wait();
  });
}

}  // namespace
