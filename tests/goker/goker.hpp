#pragma once

// Real concurrency bugs of Go programs, as small programs of this library: the structure of each bug, not its code.
// Names, numbers and causes are from GoKer, a part of GoBench (Yuan, Li, Lu, Liu, Li and Xue, CGO 2021). The number is
// the issue or change of the project. Each program has a corrected twin.

#include <ulexite.hpp>

#include <chrono>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <utility>

namespace goker {

using namespace ulexite;
using namespace std::chrono_literals;

struct bug {
  const char* name;
  void (*run)(bool mended);
};

std::span<const bug> cockroach();
std::span<const bug> etcd();
std::span<const bug> grpc();
std::span<const bug> kubernetes();
std::span<const bug> moby();
std::span<const bug> others();

// A fiber that is not joined, as in Go.
template <class F>
void go(F&& function) {
  spawn(std::forward<F>(function)).detach();
}

// A channel that is only closed, or passes only tokens.
using token = channel<int>;

using lock = std::lock_guard<mutex>;
using unique = std::unique_lock<mutex>;

}  // namespace goker
