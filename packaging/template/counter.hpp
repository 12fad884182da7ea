#pragma once

#include <ulexite.hpp>

#include <mutex>

// A count that any number of fibers and threads may change.
class counter {
 public:
  void add(int number) {
    const std::lock_guard lock(mutex_);
    value_ += number;
  }

  int value() const {
    const std::lock_guard lock(mutex_);
    return value_;
  }

 private:
  mutable ulexite::mutex mutex_;
  int value_ = 0;
};
