#include "progress.hpp"

#include "text.hpp"

#include <unistd.h>

#include <iostream>
#include <string>

namespace tour {

using namespace std::chrono_literals;

progress::progress(ulexite::runtime& runtime, const char* title, const char* unit, std::uint64_t total)
    : title_(title), unit_(unit), total_(total) {
  if (isatty(STDERR_FILENO) == 0) {
    std::cerr << title_ << " ...\n";
    return;
  }
  // The fiber never ends by itself: its sleep throws operation_cancelled when the destructor asks it to stop.
  ticker_ = runtime.spawn([this]() -> void {
    for (;;) {
      show();
      ulexite::this_fiber::sleep_for(100ms);
    }
  });
}

progress::~progress() {
  if (!ticker_.joinable()) return;
  ticker_.request_stop();
  ticker_.join();
  std::cerr << "\r\033[K" << std::flush;  // leaves the line empty for what comes next
}

void progress::restart(const char* unit, std::uint64_t total) noexcept {
  unit_ = unit;
  total_ = total;
  count_ = 0;
}

void progress::show() const {
  const std::uint64_t total = total_;
  const double seconds = std::chrono::duration<double>(ulexite::steady_clock::now() - begin_).count();
  std::string line = std::string(title_) + ": " + grouped(count_);
  if (total != 0) line += " of " + grouped(total);
  line += std::string(" ") + unit_.load() + ", " + duration(seconds);
  std::cerr << "\r\033[K" << line << std::flush;
}

}  // namespace tour
