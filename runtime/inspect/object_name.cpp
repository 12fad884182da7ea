#include <ulexite/base/spin_lock.hpp>
#include <ulexite/runtime/object_name.hpp>

#include <cstdio>
#include <mutex>

namespace ulexite {
namespace {

struct names {
  detail::spin_lock guard;
  detail::intrusive_list<object_name> all;  // the newest first
};

names& names_of_process() {
  static names& them = *new names;  // never destroyed, because a variable of the program may have a name until its end
  return them;
}

}  // namespace

object_name::object_name(std::uintptr_t begin, std::size_t size, std::string_view name)
    : begin_(begin), size_(size), name_(name) {
  names& known = names_of_process();
  const std::lock_guard lock(known.guard);
  known.all.push_front(*this);
}

object_name::~object_name() {
  const std::lock_guard lock(names_of_process().guard);
  detail::intrusive_list<object_name>::remove(*this);
}

std::string detail::name_and_address(const void* object) {
  const auto address = reinterpret_cast<std::uintptr_t>(object);
  names& known = names_of_process();
  std::string text;
  {
    const std::lock_guard lock(known.guard);
    const object_name* found = nullptr;
    known.all.for_each([&](const object_name& each) {
      if (address - each.begin_ < each.size_ && (!found || each.size_ < found->size_)) found = &each;
    });
    if (found) text = '"' + found->name_ + "\" ";
  }
  char number[32];
  std::snprintf(number, sizeof number, "0x%llx", static_cast<unsigned long long>(address));
  return text + number;
}

}  // namespace ulexite
