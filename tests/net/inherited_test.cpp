// Sockets that another program has opened for this one.

#include "net_fixture.hpp"

#include <ulexite/net/inherited.hpp>
#include <ulexite/net/udp.hpp>
#include <ulexite/sync/task_group.hpp>

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/vm_sockets.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace ulexite::test {
namespace {

using net::inherited_descriptors;
using net::tcp_listener;
using net::tcp_stream;

void announce(const std::string& process, const std::string& count) {
  ::setenv("LISTEN_PID", process.c_str(), 1);
  ::setenv("LISTEN_FDS", count.c_str(), 1);
}

// Each case is a process of its own, because the descriptors begin with 3.
void expect_to_hold(bool (*check)(std::size_t), std::size_t workers = 1) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(std::_Exit(check(workers) ? 0 : 1), testing::ExitedWithCode(0), "");
}

class InheritedTest : public NetTest {};
ULEXITE_ON_ALL_WORKER_COUNTS(InheritedTest);

TEST_P(InheritedTest, AListenerOfSystemdServes) {
  const auto serves = [](std::size_t workers) {
    tcp_listener opened(loopback());
    const net::endpoint at = opened.local_endpoint();
    const int fd = opened.release();
    if (fd != 3) ::dup2(fd, 3);
    ::fcntl(3, F_SETFD, 0);
    announce(std::to_string(::getpid()), "1");
    return runtime({.threads = workers}).run([&] {
      const auto given = inherited_descriptors();
      if (given != std::vector{3} || ::fcntl(3, F_GETFD) != FD_CLOEXEC) return false;
      auto listener = tcp_listener::adopt(given.front());
      bool answered = false;
      scope([&](task_group& group) {
        group.spawn([&] {
          task_group connections;
          listener.serve(connections, [](tcp_stream& client) { client.write("hello"); });
        });
        auto client = tcp_stream::connect(at);
        client.expires_after(bound);
        answered = read_all(client) == "hello";
        listener.close();
      });
      return answered;
    });
  };
  expect_to_hold(serves, GetParam());
}

TEST(Inherited, WhatIsNotForThisProcessIsLeftAlone) {
  const auto finds_none = [](std::size_t) {
    const std::string me = std::to_string(::getpid());
    bool none = inherited_descriptors().empty();
    for (const auto& [process, count] : {std::pair(std::string("1"), "1"),
                                         {me, "0"},
                                         {me, "-1"},
                                         {me, "x"},
                                         {me, ""},
                                         {me, "2147483647"},
                                         {me, "1x"},
                                         {me + " ", "1"}}) {
      announce(process, count);
      none = none && inherited_descriptors().empty();
    }
    return none;
  };
  expect_to_hold(finds_none);
}

TEST(Inherited, ADescriptorThatIsNotOpenIsAnError) {
  const auto tells = [](std::size_t) {
    ::dup2(STDERR_FILENO, 3);
    ::close(4);
    announce(std::to_string(::getpid()), "2");
    try {
      static_cast<void>(inherited_descriptors());
    } catch (const std::system_error& error) {
      return error.code().value() == EBADF && std::string(error.what()).find("descriptor 4") != std::string::npos;
    }
    return false;
  };
  expect_to_hold(tells);
}

TEST(Inherited, ASocketOfAnotherFamilyIsAnError) {
  const int fd = ::socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) GTEST_SKIP() << "this system has no AF_VSOCK";
  sockaddr_vm any{};
  any.svm_family = AF_VSOCK;
  any.svm_cid = VMADDR_CID_ANY;
  any.svm_port = VMADDR_PORT_ANY;
  ASSERT_EQ(::bind(fd, reinterpret_cast<const sockaddr*>(&any), sizeof any), 0);
  ASSERT_EQ(::listen(fd, 1), 0);
  EXPECT_EQ(code_of([&] { (void)tcp_listener::adopt(fd); }), std::errc::address_family_not_supported);
  EXPECT_EQ(::close(fd), 0) << "it was left open";
}

// A kernel socket answers from an address that is no endpoint.
TEST(Inherited, ADatagramOfAnotherFamilyIsReceived) {
  const int fd = ::socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_ROUTE);
  if (fd < 0) GTEST_SKIP() << "this system has no AF_NETLINK";
  auto adopted = net::udp_socket::adopt(fd);
  struct {
    nlmsghdr head;
    rtgenmsg body;
  } request{};
  request.head.nlmsg_len = sizeof request;
  request.head.nlmsg_type = RTM_GETLINK;
  request.head.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  adopted.send(&request, sizeof request);
  char answer[65536];
  net::endpoint from = loopback();
  EXPECT_GT(adopted.receive_from(answer, sizeof answer, from), 0U);
  EXPECT_EQ(from, net::endpoint());
}

}  // namespace
}  // namespace ulexite::test
