#include <ulexite/base/controller.hpp>
#include <ulexite/base/error.hpp>
#include <ulexite/base/nul.hpp>
#include <ulexite/net/resolve.hpp>
#include <ulexite/net/socket/fd_wait.hpp>
#include <ulexite/net/socket/socket_calls.hpp>
#include <ulexite/runtime/threads/blocking_pool.hpp>
#include <ulexite/runtime/worker/runtime_state.hpp>
#include <ulexite/sync/event.hpp>

#include <netdb.h>

#include <charconv>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace ulexite {
namespace {

class category final : public std::error_category {
 public:
  const char* name() const noexcept override { return "getaddrinfo"; }
  std::string message(int code) const override { return gai_strerror(code); }
};

struct list_deleter {
  void operator()(addrinfo* list) const noexcept { freeaddrinfo(list); }
};

// One query with its answer.
struct lookup {
  std::string host, service;
  std::error_code error{};
  std::vector<net::endpoint> found{};

  // Whether the service is a number that is not a port. getaddrinfo would cut it to 16 bits. It reads numbers as
  // strtoul does, which skips spaces and takes a sign. It would read "" and "*" as 0.
  [[nodiscard]] bool is_no_port() const {
    if (service.empty() || service == "*") return true;
    const std::size_t begin = service.find_first_of("0123456789");
    if (begin == service.npos || service.find_first_not_of(" \t\n\v\f\r+-") < begin) return false;
    if (service.find_first_not_of("0123456789", begin) != service.npos) return false;
    std::uint16_t port = 0;
    return begin > 0 || std::from_chars(service.data(), service.data() + service.size(), port).ec != std::errc();
  }

  [[nodiscard]] bool has_nul() const noexcept { return detail::has_nul(host) || detail::has_nul(service); }

  // For messages.
  [[nodiscard]] std::string text() const {
    return detail::shown(host + ":" + service) + (is_no_port() ? ", whose port is no number from 0 to 65535" : "");
  }

  // Asks the system. May block, unless `flags` forbid names.
  void ask(int flags) {
    if (has_nul()) {  // getaddrinfo would take the text before it
      error = std::make_error_code(std::errc::invalid_argument);
      return;
    }
    if (is_no_port()) {
      error = std::error_code(EAI_SERVICE, net::resolve_category());
      return;
    }
    if (host == "*") {  // getaddrinfo would find this machine
      error = std::error_code(EAI_NONAME, net::resolve_category());
      return;
    }
    addrinfo wanted{};
    wanted.ai_socktype = SOCK_STREAM;
    wanted.ai_flags = flags;
    addrinfo* answer = nullptr;
    if (const int code = getaddrinfo(host.c_str(), service.c_str(), &wanted, &answer)) {
      error = code == EAI_SYSTEM ? std::error_code(detail::last_errno(), std::system_category())
                                 : std::error_code(code, net::resolve_category());
      return;
    }
    const std::unique_ptr<addrinfo, list_deleter> list(answer);
    for (const addrinfo* each = answer; each; each = each->ai_next)
      if (each->ai_family == AF_INET || each->ai_family == AF_INET6)
        found.push_back(net::endpoint::from(each->ai_addr, each->ai_addrlen));
  }
};

// A query on the blocking pool. Both sides own it, because the caller may leave before the answer arrives.
class pooled_lookup final : public detail::blocking_work {
 public:
  pooled_lookup(lookup question, std::shared_ptr<detail::blocking_pool> pool)
      : question_(std::move(question)), pool_(std::move(pool)) {}

  // False if the deadline passed first.
  static bool ask(const std::shared_ptr<pooled_lookup>& self, std::int64_t deadline, lookup& answer) {
    self->running_ = self;
    try {
      self->pool_->submit(*self);
    } catch (...) {
      self->running_ = nullptr;
      throw;
    }
    const asker here{*self};
    if (!self->done_.wait_until(steady_clock::time_point(std::chrono::nanoseconds(deadline)))) return false;
    answer = std::move(self->question_);
    return true;
  }

 private:
  // A caller that waits for the answer.
  struct asker {
    pooled_lookup& asked;
    ~asker() { asked.leave(); }
  };

  void* run() noexcept override {
    try {
      question_.ask(AI_ADDRCONFIG);
    } catch (const std::bad_alloc&) {
      question_.error = std::make_error_code(std::errc::not_enough_memory);
    }
    return nullptr;
  }

  void finish(void*) noexcept override {
    const auto until_the_end = std::move(running_);
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
      if (given_up_) pool_->given_up_ends();
    }
    done_.set();
  }

  void leave() noexcept {
    if (pool_->withdraw(*this)) {
      running_ = nullptr;
      return;
    }
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    given_up_ = true;
    pool_->give_up(*this);
  }

  lookup question_;
  const std::shared_ptr<detail::blocking_pool> pool_;
  ulexite::event done_;
  std::shared_ptr<pooled_lookup> running_;  // itself, while the pool has it
  std::mutex mutex_;                        // guards the rest
  bool ended_ = false;
  bool given_up_ = false;
};

// Asks with names forbidden, which never blocks. The result shows whether the query has a name.
bool is_of_numbers(lookup& question) {
  question.ask(AI_NUMERICHOST | AI_NUMERICSERV);
  if (question.error != std::error_code(EAI_NONAME, net::resolve_category())) return true;
  question.error.clear();
  return false;
}

}  // namespace

const std::error_category& net::resolve_category() noexcept {
  static const category instance;
  return instance;
}

std::vector<net::endpoint> net::resolve(std::string_view host, std::string_view service,
                                        const resolve_options& options) {
  const relative_timeout time = options.timeout ? relative_timeout(*options.timeout) : relative_timeout();
  detail::throw_if_stopped();
  lookup question{std::string(host), std::string(service)};
  if (!is_of_numbers(question)) {
    detail::runtime_state* const here =
        detail::this_agent().kind == detail::agent_kind::fiber ? detail::calling_runtime() : nullptr;
    if (!here || detail::controlled()) {  // a run cannot wait for the pool's threads
      question.ask(AI_ADDRCONFIG);
    } else if (!pooled_lookup::ask(std::make_shared<pooled_lookup>(question, here->blocking), time.deadline(),
                                   question)) {
      question.error = std::make_error_code(std::errc::timed_out);
    }
  }
  if (!question.error) return std::move(question.found);
  throw std::system_error(question.error, "ulexite: resolving " + question.text());
}

std::vector<net::endpoint> net::resolve(std::string_view host, std::string_view service, const resolve_options& options,
                                        std::error_code& error) try {
  error.clear();
  return resolve(host, service, options);
} catch (const std::system_error& failure) {
  error = failure.code();
  return {};
}

}  // namespace ulexite
