#pragma once

// The operations of docs/blocking.md, each in states of its own, so that contract_test.cpp can hold them against the
// page. The other files of this folder have the operations, by the page's sections.

#include "support/waiting.hpp"

#include <ulexite.hpp>
#include <ulexite/coroutine.hpp>

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

namespace ulexite::test {

// Calls of one operation. They share the state that they need.
struct calls {
  std::function<void()> ready = {};    // does not have to wait
  std::function<void()> waiting = {};  // has to wait until `release`; null if there is no such state
  std::function<void()> release = {};  // null: only a cancellation ends `waiting`
  bool refusable = true;               // no_suspend refuses `waiting`; false: it would end the process, in a destructor
  bool sometimes = false;              // it may wait, but no state forces it to
};

struct operation {
  std::string section;          // of the page
  std::string name;             // as the first column has it
  std::function<calls()> make;  // called in a fiber

  friend void PrintTo(const operation& what, std::ostream* out) { *out << what.section << ": " << what.name; }
};

inline std::vector<operation>& operations() {
  static std::vector<operation> all;
  return all;
}

// Adds the operations of a section, before main.
struct section {
  section(const char* title, std::vector<std::pair<const char*, std::function<calls()>>> rows) {
    for (auto& [name, make] : rows) operations().push_back({title, name, std::move(make)});
  }
};

// A fiber that calls `hold`, waits for the end, and calls `release`. It holds when this returns.
inline std::function<void()> held_by_a_fiber(std::function<void()> hold, std::function<void()> release) {
  struct state {
    event held, end;
  };
  const auto shared = std::make_shared<state>();
  spawn([=] {
    hold();
    shared->held.set();
    shared->end.wait();
    release();
  }).detach();
  shared->held.wait();
  return [=] { shared->end.set(); };
}

}  // namespace ulexite::test
