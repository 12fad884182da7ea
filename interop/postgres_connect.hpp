#pragma once

// How interop/postgres.hpp makes a connection, and how it asks the server to cancel a statement.
//
// libpq does both in ways that block. PQconnectStart resolves names, so they are resolved before and passed as
// addresses. PQcancel connects and waits, as long as the server is frozen; libpq 17 has PQcancelStart instead. For
// older versions the request is written here: it is 16 bytes, with a key that the server gave when it was connected.
// libpq keeps the key to itself, but its trace of the protocol, which is documented, has it. This and PQcancel send the
// request without TLS; since libpq 17 it is encrypted as the connection is.

#include <ulexite/base/error.hpp>
#include <ulexite/base/nul.hpp>
#include <ulexite/interop/postgres_values.hpp>
#include <ulexite/net/io_wait.hpp>
#include <ulexite/net/resolve.hpp>
#include <ulexite/net/tcp.hpp>

#include <libpq-fe.h>

#include <arpa/inet.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace ulexite::postgres::detail {

using handle = std::unique_ptr<PGconn, free_with<PQfinish>>;
using settings = std::map<std::string, std::string>;  // the keywords of a conninfo, and their values

// Throws std::invalid_argument, which says what is wrong.
inline settings parse_conninfo(const std::string& conninfo) {
  if (ulexite::detail::has_nul(conninfo)) throw std::invalid_argument("ulexite::postgres: the conninfo has a NUL");
  char* why = nullptr;
  const std::unique_ptr<PQconninfoOption, free_with<PQconninfoFree>> given(PQconninfoParse(conninfo.c_str(), &why));
  if (!given) {
    const std::unique_ptr<char, free_with<PQfreemem>> owner(why);
    throw std::invalid_argument(std::string("ulexite::postgres: bad conninfo: ") + (why ? why : "no memory"));
  }
  settings all;
  for (const PQconninfoOption* each = given.get(); each->keyword; ++each)
    if (each->val) all[each->keyword] = each->val;
  return all;
}

inline std::vector<std::string> split_at_commas(std::string_view text) {
  for (std::vector<std::string> parts;;) {
    const auto comma = text.find(',');
    parts.emplace_back(text.substr(0, comma));
    if (comma == text.npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

inline bool is_name_of_host(const std::string& host) { return !host.empty() && host[0] != '/' && host[0] != '@'; }

// The numeric addresses of a host, or none, with the reason appended to `why`.
inline std::vector<std::string> addresses_of(const std::string& host, std::string& why) {
  std::vector<std::string> addresses;
  try {
    for (const net::endpoint& each : net::resolve(host, "1")) {
      std::string text = each.str();  // "127.0.0.1:1" or "[::1]:1"
      text.resize(text.rfind(':'));
      addresses.push_back(text.front() == '[' ? text.substr(1, text.size() - 2) : text);
    }
  } catch (const operation_cancelled&) {
    throw;
  } catch (const std::system_error& error) {
    why += std::string(why.empty() ? "" : "; ") + error.what();
  }
  return addresses;
}

// Adds hostaddr for the names of hosts, which libpq would resolve while it blocks. A name with several addresses
// becomes several hosts, which libpq tries in turn. Hosts in a service file are left to libpq.
inline void resolve_hosts(settings& all) {
  const auto value = [&all](const char* keyword, const char* variable) {
    if (const auto found = all.find(keyword); found != all.end()) return found->second;
    const char* const fallback = std::getenv(variable);
    return std::string(fallback ? fallback : "");
  };
  if (!value("service", "PGSERVICE").empty() || !value("hostaddr", "PGHOSTADDR").empty()) return;
  const auto hosts = split_at_commas(value("host", "PGHOST")), ports = split_at_commas(value("port", "PGPORT"));
  if (ports.size() > 1 && ports.size() != hosts.size()) return;  // libpq says what is wrong
  settings lists;
  std::string why;
  bool has_names = false;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    const bool is_name = is_name_of_host(hosts[i]);
    has_names |= is_name;
    for (const auto& address : is_name ? addresses_of(hosts[i], why) : std::vector<std::string>{""}) {
      lists["host"] += hosts[i] + ",";
      lists["hostaddr"] += address + ",";
      lists["port"] += ports[ports.size() > 1 ? i : 0] + ",";
    }
  }
  if (!has_names) return;
  if (lists.empty()) throw connection_lost("ulexite::postgres: " + why, false);
  for (auto& [keyword, list] : lists) {
    list.pop_back();
    all[keyword] = list;
  }
}

// Throws what PQerrorMessage says: sql_error if the server refuses the connection for good, such as for a wrong
// password. Its verbose message has the SQLSTATE behind the translated word for FATAL: "...:  28P01: ...".
[[noreturn]] inline void refuse_connection(PGconn* of) {
  std::string text = PQerrorMessage(of);
  for (std::size_t at = text.rfind(":  "); at != text.npos && at != 0; at = text.rfind(":  ", at - 1)) {
    const std::string state = text.substr(at + 3, 5);
    if (state.size() < 5 || text.compare(at + 8, 2, ": ") != 0) continue;
    if (state.find_first_not_of("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") != state.npos) continue;
    text.resize(std::min(text.find('\n', at), text.size()));  // the place in the server's source follows
    // Classes of a server that starts, stops or has no room.
    if (state.starts_with("08") || state.starts_with("53") || state.starts_with("57")) break;
    throw sql_error(state, text);
  }
  throw connection_lost(text, false);
}

#ifndef LIBPQ_HAS_ASYNC_CANCEL
// The key for a cancel request, out of the trace of a connect.
class key_reader {
 public:
  explicit key_reader(PGconn* of) : of_(of), file_(::open_memstream(&text_, &size_)) {
    if (!file_) throw std::bad_alloc();
    PQtrace(of_, file_);
    PQsetTraceFlags(of_, PQTRACE_SUPPRESS_TIMESTAMPS);  // localtime, which makes them, is not thread-safe
  }
  key_reader(const key_reader&) = delete;
  key_reader& operator=(const key_reader&) = delete;
  ~key_reader() {
    PQuntrace(of_);
    std::fclose(file_);
    std::free(text_);
  }
  // None, if the server (which is a pooler, then) has given none.
  [[nodiscard]] std::optional<std::int32_t> key() const {
    std::fflush(file_);
    constexpr std::string_view word = "BackendKeyData";  // a tab, the process and the key follow
    const auto at = std::string_view(text_, size_).rfind(word);
    int process = 0, found = 0;
    if (at == std::string_view::npos || std::sscanf(text_ + at + word.size(), "%d %d", &process, &found) != 2 ||
        process != PQbackendPID(of_))
      return std::nullopt;
    return found;
  }

 private:
  PGconn* const of_;
  char* text_ = nullptr;
  std::size_t size_ = 0;
  std::FILE* const file_;
};
#endif

// A connection, and what a cancel request needs.
class link {
 public:
  // Connects. A cancellation point. Throws std::invalid_argument, sql_error or connection_lost.
  explicit link(const std::string& conninfo) {
    settings all = parse_conninfo(conninfo);
    resolve_hosts(all);
    std::vector<const char*> keywords, values;
    for (const auto& [keyword, value] : all) keywords.push_back(keyword.c_str()), values.push_back(value.c_str());
    keywords.push_back(nullptr), values.push_back(nullptr);
    of_.reset(PQconnectStartParams(keywords.data(), values.data(), 0));
    if (!of_) throw std::bad_alloc();
    PQsetNoticeProcessor(get(), [](void*, const char*) {}, nullptr);  // which would write to stderr
    PQsetErrorVerbosity(get(), PQERRORS_VERBOSE);
#ifndef LIBPQ_HAS_ASYNC_CANCEL
    const key_reader reader(get());
    await_connection();
    key_ = reader.key();
#else
    await_connection();
#endif
    PQsetErrorVerbosity(get(), PQERRORS_DEFAULT);
    PQsetnonblocking(get(), 1);
  }

  [[nodiscard]] PGconn* get() const noexcept { return of_.get(); }

  // Asks the server to cancel what the connection runs, and waits until it has taken the request. It takes it before
  // its process of this connection reads a further statement. A cancellation point. Throws std::system_error or
  // connection_lost if it cannot be asked.
  void cancel() const {
#ifdef LIBPQ_HAS_ASYNC_CANCEL
    const std::unique_ptr<PGcancelConn, free_with<PQcancelFinish>> request(PQcancelCreate(get()));
    const auto failed = [&] { throw connection_lost(PQcancelErrorMessage(request.get()), false); };
    if (!PQcancelStart(request.get())) failed();
    for (auto next = PGRES_POLLING_WRITING; next != PGRES_POLLING_OK; next = PQcancelPoll(request.get())) {
      if (next == PGRES_POLLING_FAILED) failed();
      await(PQcancelSocket(request.get()), next);
    }
#else
    if (!key_) throw connection_lost("ulexite::postgres: the server gave no key for cancel requests", false);
    sockaddr_storage peer{};
    socklen_t size = sizeof peer;
    if (::getpeername(PQsocket(get()), reinterpret_cast<sockaddr*>(&peer), &size) != 0)
      throw std::system_error(errno, std::system_category(), "getpeername");
    auto to = net::tcp_stream::connect(net::endpoint::from(reinterpret_cast<const sockaddr*>(&peer), size));
    const std::array<std::uint32_t, 4> request{htonl(16), htonl(1234u << 16 | 5678u),
                                               htonl(static_cast<std::uint32_t>(PQbackendPID(get()))),
                                               htonl(static_cast<std::uint32_t>(*key_))};
    to.write(request.data(), sizeof request);
    char end = 0;
    to.read_some(&end, 1);  // the server closes when it has sent the signal
#endif
  }

 private:
  static void await(int fd, PostgresPollingStatusType what) {
    net::wait_fd(fd, what == PGRES_POLLING_READING ? net::interest::read : net::interest::write);
  }
  // The socket may change between two polls (several hosts, a try without TLS), so it is read each time.
  void await_connection() const {
    for (auto next = PGRES_POLLING_WRITING; next != PGRES_POLLING_OK; next = PQconnectPoll(get())) {
      if (next == PGRES_POLLING_FAILED || PQstatus(get()) == CONNECTION_BAD) refuse_connection(get());
      await(PQsocket(get()), next);
    }
  }

  handle of_;
#ifndef LIBPQ_HAS_ASYNC_CANCEL
  std::optional<std::int32_t> key_;
#endif
};

}  // namespace ulexite::postgres::detail
