#pragma once

// For explorations with coroutines and fibers mixed: a body is written once, as a coroutine. The strategy chooses for
// each whether it runs as one, or in a fiber that its waits block.

#include "library.hpp"

#include <ulexite/coroutine.hpp>

#include <utility>

namespace ulexite::test {

// Starts `body` by spawn(function).
template <class Spawn, class Body>
auto of_either_kind(Spawn&& spawn, Body body) {
  if (choose(2)) return spawn(std::move(body));
  return spawn([body = std::move(body)]() mutable { return ux::await(body()); });
}
template <class Body>
auto start(Body body) {
  return of_either_kind([](auto f) { return ux::spawn(std::move(f)); }, std::move(body));
}
template <class Group, class Body>
void start_in(Group& group, Body body) {
  of_either_kind([&](auto f) { group.spawn(std::move(f)); }, std::move(body));
}

// As unless_cancelled.
inline ux::task<bool> to_its_end_or_stop(ux::task<> body) {
  try {
    co_await std::move(body);
    co_return true;
  } catch (const ux::operation_cancelled&) {
    co_return false;
  }
}

}  // namespace ulexite::test
