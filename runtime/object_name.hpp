#pragma once

#include <ulexite/base/intrusive_list.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

namespace ulexite {

namespace detail {
// "0x7f03c997dda0" of an object at which fibers wait, with its name before it if it has one. Throws std::bad_alloc.
std::string name_and_address(const void* object);
}  // namespace detail

// A name for an object at which fibers wait, such as a mutex, a channel or an event: dumps, reports of deadlocks,
// errors of mutexes and the inspector's page then write `for mutex "sessions" 0x7f03c997dda0`. The object has the name
// as long as this value exists, so the value is declared after the object. An object that contains such objects can be
// named too; of several names the one of the smallest object counts, and of equal ones the newest. A sender, receiver,
// future, promise, broadcast or watch is a handle of something else, which gets no name. A join has the name of its
// fiber. A wait costs nothing for it.
//
// Its constructor and destructor take a lock of the process for a short time, and wait for no fiber. Any thread. A dump
// looks through all names for each wait that it describes: some hundreds of objects may have one, not each connection.
class [[nodiscard]] object_name : private detail::list_hook {
 public:
  // Names `object`; keeps a copy of `name`. Throws std::bad_alloc.
  template <class Object>
  [[nodiscard]] object_name(const Object& object, std::string_view name)
      : object_name(reinterpret_cast<std::uintptr_t>(std::addressof(object)), sizeof object, name) {
    static_assert(
        !std::is_pointer_v<Object> && !requires { object.operator->(); },
        "object_name would name the pointer: pass the object, *pointer");
  }
  template <class Object>
  object_name(const Object&&, std::string_view) = delete;  // it would be gone before its name
  ~object_name();
  object_name(const object_name&) = delete;
  object_name& operator=(const object_name&) = delete;

 private:
  friend class detail::intrusive_list<object_name>;
  friend std::string detail::name_and_address(const void* object);

  object_name(std::uintptr_t begin, std::size_t size, std::string_view name);

  const std::uintptr_t begin_;
  const std::size_t size_;  // bytes
  const std::string name_;
};

}  // namespace ulexite
