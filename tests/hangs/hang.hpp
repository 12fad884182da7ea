#pragma once

// Programs that hang, planted: what is run, and the words that the report must have (hangs.cpp).

#include <ulexite.hpp>

#include <initializer_list>
#include <string_view>
#include <vector>

namespace ulexite::hangs {

struct hang {
  const char* name;
  void (*run)(runtime& rt);  // on a plain thread; does not return, or throws errc::deadlock
  std::initializer_list<const char*> words;
  bool outside = false;  // a dump reports it, because not only fibers could end it
};

// The hangs of each file.
std::initializer_list<hang> hangs_of_locks();
std::initializer_list<hang> hangs_of_messages();
std::initializer_list<hang> hangs_of_groups();
std::initializer_list<hang> hangs_from_outside();

}  // namespace ulexite::hangs
