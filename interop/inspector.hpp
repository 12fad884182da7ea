#pragma once

// A page that shows a running program: workers, fibers in groups, which fiber waits for which, rates, traces.
//
//   ulexite::runtime runtime;
//   ulexite::inspector inspector(runtime, {.port = 7071});
//   std::cerr << "see http://" << inspector.endpoint().str() << "/\n";
//
// Needs Boost.Beast (headers only).

#include <cstdint>  // Boost 1.83's Beast uses it without including it

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http.hpp>
#include <ulexite/base/error.hpp>
#include <ulexite/interop/asio.hpp>
#include <ulexite/interop/inspector_page.hpp>
#include <ulexite/net/tcp.hpp>
#include <ulexite/runtime/runtime.hpp>
#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/task_group.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <iterator>
#include <limits>
#include <list>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <arpa/inet.h>

namespace ulexite {

// How to serve an inspector's page.
struct inspector_options {
  std::string address = "127.0.0.1";  // an IPv4 or IPv6 address
  std::uint16_t port = 0;             // 0: a free port, see inspector::endpoint
  // Whether the address may be other than loopback. The page has no password. Any client that reaches it sees the names
  // of fibers and functions, and can record traces; so can a page of another site, in the browser of such a client,
  // that has its own name lead here.
  bool allow_remote = false;
  // The number of connections at a time, at least one. One more ends the connection whose client has neither asked nor
  // read for the longest time.
  std::size_t max_connections = 8;
};

// Serves the page of one runtime on its own thread. So the page answers when all workers of that runtime are stuck.
// Because of this thread the runtime no longer detects that all its fibers wait for ever
// (runtime_options::on_deadlock). It still detects circles of waits. The page shows both. GET /dump.txt, /dump.json and
// /metrics (Prometheus) return the output of runtime::dump, dump_json and write_prometheus. GET /dump.txt?stuck and
// /dump.json?stuck have the backtraces of stuck workers too (dump_options::stuck_backtraces); the page asks for them
// once for each time that a worker is stuck. GET /metrics?long_wait_ms=N also counts the waits that are longer. GET
// /trace?ms=N records a trace for N milliseconds. GET /trace returns the present recording, such as that of
// ULEXITE_TRACE, or the last one.
class inspector {
 public:
  // Starts to serve the page of `watched`. The runtime must outlive the inspector, and must not be shut down earlier.
  // Throws std::invalid_argument if the address is invalid, or is not loopback and allow_remote is false. Throws
  // std::system_error if it cannot listen on the port.
  explicit inspector(runtime& watched, inspector_options options = {})
      : watched_(watched),
        options_(std::move(options)),
        own_({.threads = 1, .on_deadlock = deadlock_action::ignore}),
        listener_(checked_endpoint(options_)) {
    serving_ = own_.spawn({.name = "inspector"}, [this] { serve(); });
  }
  // Ends the connections, and waits until they have ended.
  ~inspector() {
    listener_.close();
    own_.request_stop();
    serving_.join();
  }
  inspector(const inspector&) = delete;
  inspector& operator=(const inspector&) = delete;

  // The address and port on which it listens.
  [[nodiscard]] net::endpoint endpoint() const { return listener_.local_endpoint(); }

 private:
  using request = boost::beast::http::request<boost::beast::http::empty_body>;
  using response = boost::beast::http::response<boost::beast::http::string_body>;
  using status = boost::beast::http::status;

  static constexpr std::size_t most_header = 8 * 1024;
  static constexpr std::chrono::milliseconds longest_trace{10'000};
  static constexpr std::string_view how_to_trace = "/trace?ms=N records N milliseconds, from 1 to 10000";
  static constexpr std::chrono::seconds longest_pause{30};  // of a client that asks or reads

  // "127.evil.example" begins as an address, but is a name.
  static bool is_loopback(const std::string& address) {
    in_addr number;
    return address == "::1" || (address.starts_with("127.") && ::inet_pton(AF_INET, address.c_str(), &number) == 1);
  }

  static net::endpoint checked_endpoint(const inspector_options& options) {
    if (!options.allow_remote && !is_loopback(options.address))
      throw std::invalid_argument("ulexite::inspector: " + options.address +
                                  " is not a loopback address; set inspector_options::allow_remote to serve it");
    return net::endpoint::ip(options.address, options.port);
  }

  void serve() {
    task_group connections;
    net::serve_options limits;
    limits.max_connections = std::max<std::size_t>(options_.max_connections, 1) + 1;
    limits.drain_time = std::chrono::milliseconds(0);
    listener_.serve(connections, [this](net::tcp_stream& client) { talk(client); }, limits);
  }

  struct connection {
    net::tcp_stream& client;
    bool answers = false;  // and does not wait for its client, to ask or to read
  };

  // A place in the list of connections. It has a lock because a worker of `own_` may pass to another thread.
  class listed_connection {
   public:
    listed_connection(inspector& home, net::tcp_stream& client) : home_(home) {
      const std::lock_guard lock(home_.guard_);
      at_ = home_.connections_.insert(home_.connections_.end(), {client});
      make_room();
    }
    ~listed_connection() {
      const std::lock_guard lock(home_.guard_);
      home_.connections_.erase(at_);
    }
    listed_connection(const listed_connection&) = delete;
    listed_connection& operator=(const listed_connection&) = delete;

    void set_answers(bool answers) {
      const std::lock_guard lock(home_.guard_);
      at_->answers = answers;
      home_.connections_.splice(home_.connections_.end(), home_.connections_, at_);
      make_room();
    }

   private:
    // Called with the lock held. Ends the oldest wait for a client, but not the caller's.
    void make_room() {
      auto& all = home_.connections_;
      const auto last = std::prev(all.end());
      const auto oldest = std::find_if(all.begin(), last, [](const connection& each) { return !each.answers; });
      if (all.size() > std::max<std::size_t>(home_.options_.max_connections, 1) && oldest != last)
        oldest->client.close();
    }

    inspector& home_;
    std::list<connection>::iterator at_;
  };

  void talk(net::tcp_stream& client) {
    namespace http = boost::beast::http;
    asio_stream stream(client);
    listed_connection listed(*this, client);
    boost::beast::flat_buffer buffer(most_header);
    for (bool more = true; more;) {
      http::request_parser<http::empty_body> parser;
      parser.body_limit(
          std::numeric_limits<std::uint64_t>::max());  // none is read; with no limit Boost 1.74 refuses all
      boost::system::error_code error;
      client.expires_after(longest_pause);
      http::read_header(stream, buffer, parser, error);
      if (error) return;  // the client has closed the connection, or does not speak HTTP
      const request& asked = parser.get();
      listed.set_answers(true);
      response answer = answer_to(asked);
      listed.set_answers(false);
      answer.version(asked.version());
      answer.set("X-Content-Type-Options", "nosniff");
      answer.set(http::field::cache_control, "no-store");
      answer.keep_alive(asked.keep_alive() && parser.is_done());  // no page needs a body, so none is read
      answer.prepare_payload();
      client.expires_after(longest_pause);
      http::response_serializer<http::string_body> serializer(answer);
      if (asked.method() == http::verb::head)  // its answer has no body, although it tells the size of one
        http::write_header(stream, serializer, error);
      else
        http::write(stream, serializer, error);
      more = !error && answer.keep_alive();
      if (!parser.is_done()) drop_input(client);
    }
  }

  // Ends the connection in order. A close with unread input would reset it, and the client might lose the answer.
  static void drop_input(net::tcp_stream& client) {
    client.expires_after(std::chrono::seconds(2));
    std::error_code error;
    client.shutdown_write(error);
    std::array<char, 4096> waste;
    while (!error && client.read_some(waste.data(), waste.size(), error) > 0) {
    }
  }

  // Whether the request names this host. A page of another site can make the browser send requests here under the
  // site's own name.
  [[nodiscard]] bool names_this_host(const request& asked) const {
    if (options_.allow_remote) return true;
    const auto field = asked[boost::beast::http::field::host];
    std::string_view host(field.data(), field.size());
    if (const auto colon = host.rfind(':'); colon != host.npos && host.find(']', colon) == host.npos)
      host = host.substr(0, colon);
    return boost::beast::iequals({host.data(), host.size()}, "localhost") || host == "[::1]" ||
           is_loopback(std::string(host));
  }

  // Whether a page of another site makes the browser ask, which could start a trace, although it could not read that.
  [[nodiscard]] static bool is_of_another_site(const request& asked) {
    const auto site = asked["Sec-Fetch-Site"];
    return !site.empty() && site != "same-origin" && site != "none";
  }

  [[nodiscard]] response answer_to(const request& asked) const {
    if (!names_this_host(asked)) return refuse(status::forbidden, "this host is not meant");
    if (asked.method() != boost::beast::http::verb::get) {
      response answer = refuse(status::method_not_allowed, "only GET");
      answer.set(boost::beast::http::field::allow, "GET");
      return answer;
    }
    std::string_view path(asked.target().data(), asked.target().size());
    const std::string_view query = path.substr(std::min(path.find('?'), path.size()));
    path.remove_suffix(query.size());
    if (path == "/") return give("text/html; charset=utf-8", detail::inspector_page());
    if (is_of_another_site(asked)) return refuse(status::forbidden, "another site asks: open it by its address");
    const dump_options dump{.stuck_backtraces = query == "?stuck"};
    if (path == "/dump.json") return write("application/json", [&](auto& out) { watched_.dump_json(out, dump); });
    if (path == "/dump.txt") return write("text/plain; charset=utf-8", [&](auto& out) { watched_.dump(out, dump); });
    if (path == "/metrics") return metrics(query);
    if (path == "/trace") return trace(query);
    return refuse(status::not_found, "there is no such page");
  }

  // The number behind that name, if it is all of the query; else 0.
  static std::int64_t number_in(std::string_view query, std::string_view name) {
    std::int64_t number = 0;
    if (!query.starts_with(name)) return 0;
    const char* const end = query.data() + query.size();
    const auto parsed = std::from_chars(query.data() + name.size(), end, number);
    return parsed.ec == std::errc() && parsed.ptr == end && number > 0 ? number : 0;
  }

  [[nodiscard]] response metrics(std::string_view query) const {
    const std::int64_t time = number_in(query, "?long_wait_ms=");
    if (!query.empty() && time == 0)
      return refuse(status::bad_request, "/metrics?long_wait_ms=N also counts waits of more than N milliseconds");
    const prometheus_options options{.long_wait = std::chrono::milliseconds(time)};
    return write("text/plain; version=0.0.4", [&](std::ostream& out) { watched_.write_prometheus(out, options); });
  }

  [[nodiscard]] response trace(std::string_view query) const {
    if (query.empty()) return recording();
    const std::int64_t time = number_in(query, "?ms=");
    if (time == 0 || time > longest_trace.count()) return refuse(status::bad_request, how_to_trace);
    try {
      watched_.start_trace();
    } catch (const usage_error&) {
      return refuse(status::conflict, "a trace is being recorded already: /trace returns it");
    }
    const stop_at_end stop{watched_};
    this_fiber::sleep_for(std::chrono::milliseconds(time));
    return recording();
  }

  [[nodiscard]] response recording() const {
    try {
      response answer = write("application/json", [&](std::ostream& out) { watched_.write_trace(out); });
      answer.set(boost::beast::http::field::content_disposition, "attachment; filename=\"ulexite-trace.json\"");
      return answer;
    } catch (const usage_error&) {
      return refuse(status::bad_request, "nothing was recorded: " + std::string(how_to_trace));
    }
  }

  struct stop_at_end {
    runtime& watched;
    ~stop_at_end() { watched.stop_trace(); }
  };

  template <class Write>
  static response write(const char* type, Write&& write) {
    std::ostringstream text;
    write(text);
    return give(type, std::move(text).str());
  }
  static response give(const char* type, std::string&& body) {
    response answer(status::ok, 11);
    answer.set(boost::beast::http::field::content_type, type);
    answer.body() = std::move(body);
    return answer;
  }
  static response refuse(status which, std::string_view why) {
    response answer = give("text/plain; charset=utf-8", std::string(why) + '\n');
    answer.result(which);
    return answer;
  }

  runtime& watched_;
  const inspector_options options_;
  std::mutex guard_;
  std::list<connection> connections_;  // those that wait for their client since long ago come first
  runtime own_;
  net::tcp_listener listener_;
  join_handle<void> serving_;
};

}  // namespace ulexite
