#include "contract/contract.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <optional>

namespace {

using namespace ulexite;
using namespace ulexite::net;
using namespace ulexite::test;

// Two ends of a connection. What is sent to `idle` waits, and `busy` has always something.
struct connections {
  tcp_stream idle, idle_peer, busy, busy_peer, full, full_peer;
  std::array<char, 1> byte{};

  connections() {
    connect(idle, idle_peer);
    connect(busy, busy_peer);
    connect(full, full_peer);
    busy_peer.write(std::string(4000, 'x'));
    const std::string much(1 << 16, 'x');
    while (::send(full.native_handle(), much.data(), much.size(), MSG_DONTWAIT) > 0) {
    }
  }
  static void connect(tcp_stream& a, tcp_stream& b) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) std::abort();
    a = tcp_stream::adopt(ends[0]);
    b = tcp_stream::adopt(ends[1]);
  }
};

void read_one(tcp_stream& from, connections& on) { (void)from.read_some(on.byte.data(), on.byte.size()); }
void wake_reader(connections& on) { on.idle_peer.write(std::string_view("y")); }
void wake_writer(connections& on) {
  std::string sink(1 << 20, ' ');
  while (::recv(on.full_peer.native_handle(), sink.data(), sink.size(), MSG_DONTWAIT) > 0) {
  }
}

const section network{
    "Net",
    {
        row_on<connections>(
            "tcp_stream", [](connections& on) { read_one(on.busy, on); },
            [](connections& on) { read_one(on.idle, on); }, wake_reader),
        row_on<connections>(
            "tcp_stream", [](connections& on) { on.idle.write(std::string_view("z")); },
            [](connections& on) { (void)on.full.write_some("z", 1); }, wake_writer),
        row_on<connections>(
            "peek", [](connections& on) { (void)on.busy.peek(on.byte.data(), 1); },
            [](connections& on) { (void)on.idle.peek(on.byte.data(), 1); }, wake_reader),
        {"`tcp_stream::connect` to one endpoint or several",
         [] {
           const auto at = std::make_shared<tcp_listener>(endpoint::ip("127.0.0.1", 0));
           return calls{.ready = [=] { (void)tcp_stream::connect(at->local_endpoint()); }, .sometimes = true};
         }},
        {"tcp_listener::accept",
         [] {
           struct state {
             tcp_listener idle{endpoint::ip("127.0.0.1", 0)}, busy{endpoint::ip("127.0.0.1", 0)};
             std::vector<tcp_stream> clients;
           };
           const auto on = std::make_shared<state>();
           for (int i = 0; i < 3; ++i) on->clients.push_back(tcp_stream::connect(on->busy.local_endpoint()));
           return calls{.ready = [=] { (void)on->busy.accept(); },
                        .waiting = [=] { (void)on->idle.accept(); },
                        .release = [=] { on->clients.push_back(tcp_stream::connect(on->idle.local_endpoint())); }};
         }},
        {"tcp_listener::close",
         [] {
           const auto on = std::make_shared<tcp_listener>(endpoint::ip("127.0.0.1", 0));
           return plain([=] { on->close(); });
         }},
        {"`udp_socket` sends and receives, also several at a time",
         [] {
           struct state {
             udp_socket idle{endpoint::ip("127.0.0.1", 0)}, busy{endpoint::ip("127.0.0.1", 0)};
             char byte = 0;
           };
           const auto on = std::make_shared<state>();
           for (int i = 0; i < 3; ++i) on->idle.send_to("x", 1, on->busy.local_endpoint());
           return calls{.ready =
                            [=] {
                              endpoint from;
                              (void)on->busy.receive_from(&on->byte, 1, from);
                            },
                        .waiting =
                            [=] {
                              endpoint from;
                              (void)on->idle.receive_from(&on->byte, 1, from);
                            },
                        .release = [=] { on->busy.send_to("x", 1, on->idle.local_endpoint()); }};
         }},
        row_on<connections>("shutdown_write", [](connections& on) { on.idle.shutdown_write(); }),
        row_on<connections>("close", [](connections& on) { on.idle.close(); }),
        row_on<connections>(
            "wait_fd", [](connections& on) { wait_fd(on.busy.native_handle(), interest::read); },
            [](connections& on) { wait_fd(on.idle.native_handle(), interest::read); }, wake_reader),
    }};

// A file that is in memory, in a folder of its own.
struct files {
  std::filesystem::path folder;
  os::file open;

  files() {
    std::string name = "/tmp/ulexite_contract.XXXXXX";
    if (!::mkdtemp(name.data())) std::abort();
    folder = name;
    os::write_all(path(), "text");
    open = os::file(path(), os::open_mode::read);
  }
  ~files() { std::filesystem::remove_all(folder); }
  [[nodiscard]] std::filesystem::path path() const { return folder / "file"; }
};

auto on_files(const char* name, void (*call)(files&), bool sometimes) {
  return std::pair<const char*, std::function<calls()>>(name, [=] {
    const auto on = std::make_shared<files>();
    return calls{.ready = [=] { call(*on); }, .sometimes = sometimes};
  });
}

// A process that ends at once or at the release, and what it writes.
calls of_process(void (*use)(os::process&)) {
  struct state {
    os::process ended{os::process_options{.arguments = {"true"}, .out = os::stdio::pipe}};
    os::process under_way{os::process_options{.arguments = {"cat"}, .in = os::stdio::pipe, .out = os::stdio::pipe}};
  };
  const auto on = std::make_shared<state>();
  on->ended.wait();
  return {.ready = [=] { use(on->ended); },
          .waiting = [=] { use(on->under_way); },
          .release = [=] { on->under_way.in().close(); }};
}

const section system_calls{
    "Files, signals, processes",
    {
        on_files(
            "read_at",
            [](files& on) {
              char byte = 0;
              (void)on.open.read_at(&byte, 1, 0);
            },
            true),
        on_files(
            "file::size", [](files& on) { (void)on.open.size(); }, false),
        on_files(
            "file::release", [](files& on) { on.open = os::file::adopt(on.open.release(), "again"); }, false),
        on_files(
            "file::close", [](files& on) { on.open.close(); }, true),
        on_files(
            "walk", [](files& on) { os::walk(on.folder, [](const os::walk_entry&) {}); }, true),
        {"output_of",
         [] { return calls{.ready = [] { (void)os::output_of({.arguments = {"true"}}); }, .sometimes = true}; }},
        {"process",
         [] {
           const auto on = std::make_shared<std::optional<os::process>>();
           return calls{.ready = [=] { on->emplace(os::process_options{.arguments = {"true"}}); }, .sometimes = true};
         }},
        {"input_stream",
         [] {
           struct pipe {
             int ends[2];
             pipe() {
               if (::pipe(ends) != 0) std::abort();
             }
             ~pipe() {
               ::close(ends[0]);
               ::close(ends[1]);
             }
             void write() { EXPECT_EQ(::write(ends[1], "text", 4), 4); }
           };
           struct state {
             pipe busy, idle;
             os::input_stream from_busy = os::input_stream::share(busy.ends[0], "busy");
             os::input_stream from_idle = os::input_stream::share(idle.ends[0], "idle");
             char byte = 0;
           };
           const auto on = std::make_shared<state>();
           on->busy.write();
           return calls{.ready = [=] { (void)on->from_busy.read_some(&on->byte, 1); },
                        .waiting = [=] { (void)on->from_idle.read_some(&on->byte, 1); },
                        .release = [=] { on->idle.write(); }};
         }},
        {"process::wait", [] { return of_process([](os::process& of) { of.wait(); }); }},
        {"process::kill",
         [] {
           const auto on =
               std::make_shared<os::process>(os::process_options{.arguments = {"cat"}, .in = os::stdio::pipe});
           return plain([=] { on->kill(0); });
         }},
        {"pipe_reader",
         [] {
           return of_process([](os::process& of) {
             char byte = 0;
             (void)of.out().read_some(&byte, 1);
           });
         }},
        {"pipe_end::close",
         [] {
           const auto on =
               std::make_shared<os::process>(os::process_options{.arguments = {"cat"}, .in = os::stdio::pipe});
           return plain([=] { on->in().close(); });
         }},
        {"signal_set::receive",
         [] {
           struct state {
             os::signal_set signals{SIGUSR2}, again{SIGUSR1};
             std::atomic<bool> received{false}, sent{false};
           };
           const auto on = std::make_shared<state>();
           ::kill(::getpid(), SIGUSR1);
           while (on->again.channel().size() == 0) this_fiber::sleep_for(1ms);
           return calls{.ready = [=] { (void)on->again.receive(); },
                        .waiting =
                            [=] {
                              (void)on->signals.receive();
                              on->received = true;
                            },
                        .release =
                            [=] {
                              if (on->sent.exchange(true)) return;
                              ::kill(::getpid(), SIGUSR2);
                              // It may arrive late, and must not meet the set of the next state.
                              while (!on->received && on->signals.channel().size() == 0) this_fiber::sleep_for(1ms);
                            }};
         }},
        {"signal_set", [] { return plain([] { const os::signal_set made{SIGUSR1}; }); }},
    }};

}  // namespace
