#pragma once

// As awaitables.hpp: selects over each source, and sockets.

#include "awaitables.hpp"

#include <ulexite/net/io_wait.hpp>
#include <ulexite/net/unix.hpp>

#include <sys/socket.h>

#include <string>

namespace ulexite::test::awaitables {

// ---- selects: the second of three cases is the one that is let pass ----

template <class Make>
task<> selects(Make chosen_case) {
  channel<int> never;
  auto chosen = chosen_case();
  EXPECT_EQ(co_await co_select(on_receive(never, must_not_run), chosen, after(1h, must_not_run)), 1u);
}

struct stopped {
  std::stop_source of;
};

inline void add_selects(std::vector<awaitable_kind>& to) {
  const char* const words = "in a select";
  to.push_back(
      {"select_receive", words, true,
       over<channel<int>>(
           [](auto& from) { return selects([&] { return on_receive(from, [](auto got) { EXPECT_EQ(got, 1); }); }); },
           put, 1u)});
  to.push_back({"select_send", words, true,
                over<full_channel>([](channel<int>& at) { return selects([&] { return on_send(at, 1); }); }, drain)});
  to.push_back(
      {"select_broadcast", words, true,
       over<heard>(
           [](heard& it) { return selects([&] { return on_receive(it.from, [](auto got) { EXPECT_EQ(got, 1); }); }); },
           [](heard& it) { it.to.send(1); })});
  to.push_back(
      {"select_watch", words, true,
       over<seen>(
           [](seen& it) { return selects([&] { return on_receive(it.from, [](auto got) { EXPECT_EQ(got, 1); }); }); },
           [](seen& it) { it.to.set(1); })});
  to.push_back(
      {"select_event", words, true,
       over<event_at>([](event_at& of) { return selects([&] { return on_set(static_cast<ulexite::event&>(of)); }); },
                      [](event_at& of) { of.set(); })});
  to.push_back({"select_auto_reset_event", words, true,
                over<auto_reset_event>([](auto& of) { return selects([&] { return on_set(of); }); },
                                       [](auto& of) { of.set(); })});
  to.push_back({"select_acquire", words, true,
                over<counting_semaphore<>>([](auto& of) { return selects([&] { return on_acquire(of); }); },
                                           [](auto& of) { of.release(); }, 0)});
  to.push_back(
      {"select_join", words, true, over_child([](child& of) { return selects([&] { return on_join(of.handle); }); })});
  to.push_back({"select_future", words, true,
                over<result_of_a_promise>([](auto& it) { return selects([&] { return on_ready(it.mine); }); },
                                          [](auto& it) { it.of.set_value(1); })});
  to.push_back({"select_stop", words, true,
                over<stopped>([](stopped& it) { return selects([&] { return on_stop(it.of.get_token()); }); },
                              [](stopped& it) { it.of.request_stop(); })});
  to.push_back({"select_in_order", words, true,
                over<channel<int>>(
                    [](auto& from) -> task<> {
                      channel<int> never;
                      EXPECT_EQ(co_await co_select(in_order, on_receive(never, must_not_run),
                                                   when(false, on_receive(from, must_not_run)), on_receive(from)),
                                2u);
                    },
                    put, 1u)});
}

// ---- sockets ----

inline net::endpoint loopback() { return net::endpoint::parse("127.0.0.1:0"); }

struct streams {
  net::tcp_stream near, far;
  streams() {
    int both[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both), 0);
    near = net::tcp_stream::adopt(both[0]);
    far = net::tcp_stream::adopt(both[1]);
  }
};
// The near end takes no more. One write waits until much was read.
struct full_streams : streams {
  std::size_t sent = 0;
  full_streams() {
    const std::string block(4096, 'x');
    for (ssize_t more = 0; more >= 0; more = ::send(near.native_handle(), block.data(), block.size(), MSG_DONTWAIT))
      sent += static_cast<std::size_t>(more);
  }
  void drain() {
    std::string all(sent, 'x');
    EXPECT_EQ(far.read(all.data(), all.size()), sent);
    sent = 1;
  }
};
struct listening {
  net::tcp_listener at{loopback()};
  std::vector<net::tcp_stream> clients;
};
struct datagrams {
  net::udp_socket here{loopback()}, there{loopback()};
};
// The near end takes no more, and its peer is the far one. One send waits until datagrams are read.
struct full_datagrams {
  net::unix_datagram near, far;
  full_datagrams() {
    int both[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, both), 0);
    near = net::unix_datagram::adopt(both[0]);
    far = net::unix_datagram::adopt(both[1]);
    while (::send(near.native_handle(), "x", 1, MSG_DONTWAIT) == 1) {
    }
  }
  void drain() {
    for (char got; ::recv(far.native_handle(), &got, 1, MSG_DONTWAIT) == 1;) {
    }
  }
};

inline void add_sockets(std::vector<awaitable_kind>& to) {
  const char* const reads = "to read descriptor";
  const auto write = [](streams& of) { of.far.write("x"); };
  to.push_back({"readable", reads, true,
                over<streams>(
                    [](streams& of) -> task<> {
                      co_await co_readable(of.near);
                      char got = 0;
                      EXPECT_EQ(of.near.read_some(&got, 1), 1u);
                      EXPECT_EQ(got, 'x');
                    },
                    write)});
  to.push_back({"read_some", reads, true,
                over<streams>(
                    [](streams& of) -> task<> {
                      char got[10];
                      EXPECT_EQ(co_await co_read_some(of.near, got, sizeof got), 1u);
                      EXPECT_EQ(got[0], 'x');
                    },
                    write)});
  to.push_back({"read", reads, true,
                over<streams>(
                    [](streams& of) -> task<> {
                      std::byte got[1];
                      EXPECT_EQ(co_await co_read(of.near, got, sizeof got), 1u);
                    },
                    write)});
  const auto empty = [](full_streams& of) { of.drain(); };
  to.push_back(
      {"write", "to write descriptor", true,
       over<full_streams>([](streams& of) -> task<> { EXPECT_EQ(co_await co_write(of.near, "y"), 1u); }, empty)});
  to.push_back({"write_some", "to write descriptor", true,
                over<full_streams>(
                    [](streams& of) -> task<> { EXPECT_EQ(co_await co_write_some(of.near, "y", 1), 1u); }, empty)});
  to.push_back({"accept", reads, true,
                over<listening>(
                    [](listening& of) -> task<> {
                      net::endpoint peer;
                      const net::tcp_stream got = co_await co_accept(of.at, peer);
                      EXPECT_TRUE(got.is_open());
                      EXPECT_EQ(peer, got.remote_endpoint());
                    },
                    [](listening& of) { of.clients.push_back(net::tcp_stream::connect(of.at.local_endpoint())); })});
  const auto send = [](datagrams& of) { of.there.send_to("x", 1, of.here.local_endpoint()); };
  to.push_back({"datagram", reads, true,
                over<datagrams>(
                    [](datagrams& of) -> task<> {
                      co_await co_readable(of.here);
                      char got[10];
                      EXPECT_EQ(of.here.receive(got, sizeof got), 1u);
                    },
                    send)});
  to.push_back({"receive_from", reads, true,
                over<datagrams>(
                    [](datagrams& of) -> task<> {
                      char got[10];
                      net::endpoint from;
                      EXPECT_EQ(co_await co_receive_from(of.here, got, sizeof got, from), 1u);
                      EXPECT_EQ(got[0], 'x');
                      EXPECT_EQ(from, of.there.local_endpoint());
                    },
                    send)});
  to.push_back({"receive_datagram", reads, true,
                over<datagrams>(
                    [](datagrams& of) -> task<> {
                      char got[10];
                      EXPECT_EQ(co_await co_receive(of.here, got, sizeof got), 1u);
                    },
                    send)});
  to.push_back({"send_datagram", "to write descriptor", true,
                over<full_datagrams>([](full_datagrams& of) -> task<> { co_await co_send(of.near, "y"); },
                                     [](full_datagrams& of) { of.drain(); })});
  to.push_back({"wait_fd", reads, true,
                over<streams>(
                    [](streams& of) -> task<> {
                      EXPECT_EQ(co_await co_wait_fd(of.near.native_handle(), net::interest::read), net::interest::read);
                    },
                    write)});
  to.push_back({"wait_fd_for", "to write descriptor", true,
                over<full_streams>(
                    [](full_streams& of) -> task<> {
                      EXPECT_EQ(co_await co_wait_fd(of.near.native_handle(), net::interest::write, 1h),
                                net::interest::write);
                    },
                    empty)});
  to.push_back({"wait_any", "for one of several descriptors", true,
                over<streams>(
                    [](streams& of) -> task<> {
                      net::fd_interest fds[] = {{of.far.native_handle()}, {of.near.native_handle()}};
                      EXPECT_EQ(co_await co_wait_any(fds, later()), 1u);
                      EXPECT_EQ(fds[1].ready, net::interest::read);
                    },
                    write)});
  to.push_back({"buffered_reader", reads, true,
                over<streams>(
                    [](streams& of) -> task<> {
                      net::buffered_reader in(of.near);
                      co_await co_readable(in);
                      EXPECT_EQ(in.peek(), "x");
                      co_await co_readable(in);
                    },
                    write)});
}

inline std::vector<awaitable_kind> all_kinds() {
  std::vector<awaitable_kind> all;
  add_channels(all);
  add_gates(all);
  add_locks(all);
  add_results(all);
  add_selects(all);
  add_sockets(all);
  return all;
}

}  // namespace ulexite::test::awaitables
