#include <ulexite/runtime/inspect/report.hpp>
#include <ulexite/runtime/inspect/symbols.hpp>
#include <ulexite/runtime/object_name.hpp>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <unordered_map>

#include <cxxabi.h>
#include <dlfcn.h>
#include <link.h>

namespace ulexite::detail {
namespace {

std::string hexadecimal(std::uintptr_t number) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(number));
  return text;
}

std::string demangle(const char* name) {
  struct deleter {
    void operator()(char* text) const noexcept { std::free(text); }
  };
  int status = 0;
  const std::unique_ptr<char, deleter> plain(abi::__cxa_demangle(name, nullptr, nullptr, &status));
  return status == 0 ? plain.get() : name;
}

std::string symbolize(const void* address) {
  const auto number = reinterpret_cast<std::uintptr_t>(address);
  Dl_info found{};
  link_map* module_map = nullptr;
  // The address is a return address, which may be past the function's end. The call itself is before it.
  if (::dladdr1(reinterpret_cast<const void*>(number - 1), &found, reinterpret_cast<void**>(&module_map),
                RTLD_DL_LINKMAP) == 0 ||
      !found.dli_fname)
    return hexadecimal(number);
  // As in the file: a program that is not position-independent stands at its own addresses.
  const std::uintptr_t offset = number - 1 - module_map->l_addr;
  std::string name = found.dli_sname ? found.dli_sname : "";
  // The program's own name is what it was started by, which may lead nowhere from here.
  if (name.empty() && !*module_map->l_name) name = symbol_in_file("/proc/self/exe", offset);
  if (name.empty()) name = symbol_in_file(found.dli_fname, offset);
  std::string module = found.dli_fname;
  module.erase(0, module.rfind('/') + 1);
  const std::string place = '(' + module + '+' + hexadecimal(offset) + ')';
  return name.empty() ? place : demangle(name.c_str()) + ' ' + place;
}

}  // namespace

std::string describe(const fiber_record& fiber) {
  std::string text = "fiber #" + std::to_string(fiber.id);
  if (!fiber.name.empty()) text += " \"" + fiber.name + '"';
  return text;
}

std::string describe_state(const fiber_record& fiber, std::uint32_t least_waited) {
  switch (fiber.state) {
    case fiber_record::status::fresh: return "not started yet";
    case fiber_record::status::ready: return "could run";
    case fiber_record::status::running: return "runs";
    case fiber_record::status::waiting: break;
  }
  const std::string most = describe_time(fiber.waited), least = describe_time(least_waited);
  return "waits " + most + (least == most ? " " : " (the least " + least + ") ") + describe_wait(fiber);
}

std::string describe_stuck(const worker_report& worker) {
  std::string text = "worker " + std::to_string(worker.index) + " has not switched for " +
                     describe_time(worker.unswitched) + ": it runs " +
                     (worker.runs.id != 0 ? describe(worker.runs) : "a job");
  if (const std::string where = describe(worker.runs.where); !where.empty()) text += ", spawned at " + where;
  return text + "; " + std::to_string(worker.queued) + " queued behind it";
}

std::string describe(spawn_place where) {
  if (!where.known()) return {};
  if (!where.in_source()) return describe_frame(where.code());
  const std::source_location place = where.source();
  return std::string(place.file_name()) + ':' + std::to_string(place.line()) + " in " + place.function_name();
}

std::string describe_wait(const fiber_record& fiber) {
  std::string text = to_string(fiber.kind);
  const auto object = reinterpret_cast<std::uintptr_t>(fiber.object);
  switch (fiber.kind) {
    case wait_kind::read:
    case wait_kind::write:
      text += ' ' + std::to_string(object) + " (" + describe_descriptor(static_cast<int>(object)) + ')';
      break;
    case wait_kind::send:
      text += ' ' + name_and_address(fiber.object);
      if (fiber.capacity != 0)
        text += ", full with " + std::to_string(fiber.capacity) + (fiber.capacity == 1 ? " value" : " values");
      break;
    case wait_kind::join:
      if (fiber.id == 0) break;  // a plain thread, which may have continued by now
      text += " #" + std::to_string(fiber.joined);
      if (!fiber.joined_name.empty()) text += " \"" + fiber.joined_name + '"';
      break;
    default:
      if (object != 0) text += ' ' + name_and_address(fiber.object);
  }
  if (fiber.timed && fiber.kind != wait_kind::sleep) text += ", at most until its time is over";
  return text;
}

// Each address is looked up once per process, because the lookup reads the module's file.
std::string describe_frame(const void* address) {
  static std::mutex guard;
  static std::unordered_map<const void*, std::string>& known = *new std::unordered_map<const void*, std::string>;
  const std::lock_guard lock(guard);
  std::string& text = known[address];
  if (text.empty()) text = symbolize(address);
  return text;
}

std::string describe_time(std::uint32_t milliseconds) {
  char text[32];
  if (milliseconds < 1000) {
    std::snprintf(text, sizeof text, "%u ms", milliseconds);
  } else if (milliseconds < 120'000) {
    std::snprintf(text, sizeof text, "%.1f s", milliseconds / 1000.0);
  } else {
    std::snprintf(text, sizeof text, "%u min", milliseconds / 60'000);
  }
  return text;
}

}  // namespace ulexite::detail
