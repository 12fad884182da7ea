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
  bool refusable = true;   // no_suspend_scope refuses `waiting`; false: it would end the process, in a destructor
  bool sometimes = false;  // it may wait, but no state forces it to
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

// An operation of a section.
using named = std::pair<const char*, std::function<calls()>>;

// Adds the operations of a section, before main.
struct section {
  section(const char* title, std::vector<named> rows) {
    for (auto& [name, make] : rows) operations().push_back({title, name, std::move(make)});
  }
};

// What never has to wait.
inline calls plain(std::function<void()> call) { return {.ready = std::move(call)}; }

// An operation whose calls share a State.
template <class State>
named row_on(const char* name, void (*ready)(State&), void (*waiting)(State&) = nullptr,
             void (*release)(State&) = nullptr) {
  return {name, [=] {
            const auto on = std::make_shared<State>();
            calls made = plain([=] { ready(*on); });
            if (waiting) made.waiting = [=] { waiting(*on); };
            if (release) made.release = [=] { release(*on); };
            return made;
          }};
}

// A fiber that calls `hold` with a function that waits. It waits there when this returns, until the returned function
// is called.
inline std::function<void()> held_by_a_fiber(std::function<void(const std::function<void()>& stay)> hold) {
  struct state {
    event held, end;
  };
  const auto shared = std::make_shared<state>();
  spawn([=] {
    hold([&] {
      shared->held.set();
      shared->end.wait();
    });
  }).detach();
  shared->held.wait();
  return [=] { shared->end.set(); };
}

}  // namespace ulexite::test
