#pragma once

// Transfers of libcurl in fibers: while a transfer waits, its worker runs other fibers.
//
//   CURL* const easy = curl_easy_init();
//   curl_easy_setopt(easy, CURLOPT_URL, "https://example.org/");
//   ulexite::curl_multi transfers;
//   const CURLcode result = transfers.perform(easy);
//
// The library itself does not need libcurl; a program that includes this header links it. Call curl_global_init before
// the first transfer. libcurl resolves names on threads of its own, or with c-ares. Every transfer has CURLOPT_NOSIGNAL
// set, and CURLOPT_QUICK_EXIT: the thread of a transfer that is given up ends later, by itself. Before libcurl 7.87 to
// give such a transfer up blocks the calling thread until its name is resolved.

#include <curl/curl.h>
#include <ulexite/base/error.hpp>
#include <ulexite/net/io_wait.hpp>

#include <chrono>
#include <deque>
#include <map>
#include <new>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace ulexite {

// Transfers that run at the same time. They progress while a fiber or plain thread is in next() or perform(). One
// caller at a time may use the object. It keeps connections for later transfers until it is destroyed.
class curl_multi {
 public:
  // A transfer that has ended, and how.
  struct result {
    CURL* easy;     // the transfer
    CURLcode code;  // CURLE_OK, or why it failed
  };

  // Throws std::bad_alloc.
  curl_multi() : multi_(curl_multi_init()) {
    if (!multi_) throw std::bad_alloc();
    curl_multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, &on_socket);
    curl_multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
    curl_multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, &on_timer);
    curl_multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
  }
  curl_multi(const curl_multi&) = delete;
  curl_multi& operator=(const curl_multi&) = delete;
  // Ends the transfers under way. Their handles stay the caller's.
  ~curl_multi() {
    for (CURL* const easy : added_) curl_multi_remove_handle(multi_, easy);
    curl_multi_cleanup(multi_);
  }

  // Begins a transfer, which progresses in next(). The handle must live until the transfer has ended or is removed.
  // Throws std::runtime_error if libcurl refuses the handle.
  void add(CURL* easy) {
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
#if LIBCURL_VERSION_NUM >= 0x075700
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);  // remove() does not wait for the thread that resolves the name
#endif
    check(curl_multi_add_handle(multi_, easy));
    try {
      added_.insert(easy);
    } catch (...) {
      curl_multi_remove_handle(multi_, easy);
      throw;
    }
  }
  // Gives a transfer up, in any state.
  void remove(CURL* easy) noexcept {
    if (added_.erase(easy) != 0) curl_multi_remove_handle(multi_, easy);
    std::erase_if(ended_, [easy](const result& each) { return each.easy == easy; });
  }

  // Waits until a transfer has ended, removes and returns it; nullopt when there is none. A cancellation point: throws
  // operation_cancelled, and the transfers can go on.
  std::optional<result> next() {
    if (!ended_.empty()) {
      const result first = ended_.front();
      ended_.pop_front();
      return first;
    }
    return next_to_end();
  }

  // Makes one transfer, as curl_easy_perform does. Waits until it has ended. Other added transfers progress during the
  // call; next() returns the ended ones. A cancellation point: gives the transfer up and throws operation_cancelled.
  CURLcode perform(CURL* easy) {
    add(easy);
    try {
      for (;;) {
        const result ended = next_to_end().value();
        if (ended.easy == easy) return ended.code;
        ended_.push_back(ended);
      }
    } catch (...) {
      remove(easy);
      throw;
    }
  }

  // For options of all transfers together, such as CURLMOPT_MAX_HOST_CONNECTIONS. Do not set those of sockets and
  // timers.
  [[nodiscard]] CURLM* native_handle() const noexcept { return multi_; }

 private:
  static_assert(CURL_CSELECT_IN == static_cast<int>(net::interest::read));
  static_assert(CURL_CSELECT_OUT == static_cast<int>(net::interest::write));
  static_assert(CURL_POLL_IN == static_cast<int>(net::interest::read));
  static_assert(CURL_POLL_OUT == static_cast<int>(net::interest::write));

  static void check(CURLMcode code) {
    if (code != CURLM_OK) throw std::runtime_error(std::string("ulexite: curl_multi: ") + curl_multi_strerror(code));
  }
  // No exception may pass through libcurl. After -1 its function returns CURLM_ABORTED_BY_CALLBACK.
  static int on_socket(CURL*, curl_socket_t fd, int what, void* self, void*) noexcept try {
    auto& wanted = static_cast<curl_multi*>(self)->wanted_;
    if (what == CURL_POLL_REMOVE)
      wanted.erase(fd);
    else
      wanted[fd] = static_cast<net::interest>(what);
    return 0;
  } catch (...) {
    return -1;
  }
  static int on_timer(CURLM*, long ms, void* self) {
    auto& timer = static_cast<curl_multi*>(self)->timer_;
    timer.reset();
    if (ms >= 0) timer = steady_clock::now() + std::chrono::milliseconds(ms);
    return 0;
  }

  std::optional<result> next_to_end() {
    while (!added_.empty()) {
      int left = 0;
      while (const CURLMsg* const message = curl_multi_info_read(multi_, &left)) {
        if (message->msg != CURLMSG_DONE) continue;
        const result ended{message->easy_handle, message->data.result};
        remove(ended.easy);
        return ended;
      }
      wait();
    }
    return std::nullopt;
  }

  // Waits for one of libcurl's descriptors or its timer, and reports it to libcurl.
  void wait() {
    std::vector<net::fd_interest> fds;
    for (const auto& [fd, wanted] : wanted_) fds.push_back({fd, wanted});
    net::wait_any(fds, timer_.value_or(steady_clock::time_point::max()));
    int running = 0;
    if (timer_ && *timer_ <= steady_clock::now()) {
      timer_.reset();
      check(curl_multi_socket_action(multi_, CURL_SOCKET_TIMEOUT, 0, &running));
    }
    for (const net::fd_interest& each : fds)
      if (each.ready != net::interest::none)
        check(curl_multi_socket_action(multi_, each.fd, static_cast<int>(each.ready), &running));
  }

  CURLM* multi_;
  std::set<CURL*> added_;
  std::map<int, net::interest> wanted_;
  std::optional<steady_clock::time_point> timer_;
  std::deque<result> ended_;  // they ended while perform() waited for another transfer
};

}  // namespace ulexite
