#include <ulexite/interop/c/handles.hpp>
#include <ulexite/sync/select/channel_case.hpp>
#include <ulexite/sync/select/event_case.hpp>
#include <ulexite/sync/select/timer_case.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>

namespace ulexite::detail::c {
namespace {

struct receive_of_c final : detail::receive_case_base<cell> {
  using receive_case_base::receive_case_base;
};
struct send_of_c final : detail::send_case_base<cell> {
  using send_case_base::send_case_base;
};
struct join_of_c final : detail::event_case {
  using event_case::event_case;
};
struct timer_of_c final : detail::timer_case {
  using timer_case::timer_case;
};

// One case of the caller, and its state during the wait. It holds an element: the one to send, or one that a sender has
// put here while the caller still waits.
struct prepared : in_embedders_memory {
  std::variant<std::monostate, receive_of_c, send_of_c, join_of_c, timer_of_c> what;
  cell element;
  ulx_case* of = nullptr;  // null: the time
  detail::select_case* base = nullptr;

  void prepare(ulx_case& given) {
    if (given.reserved[0] || given.reserved[1])
      throw std::invalid_argument("ulx_select: a reserved field of a case is not 0");
    of = &given;
    given.error = 0;
    switch (given.what) {
      case ULX_CASE_RECEIVE: base = &what.emplace<receive_of_c>(given.channel->of); break;
      case ULX_CASE_SEND:
        element = cell(given.element, given.channel->element_size);
        base = &what.emplace<send_of_c>(given.channel->of, element);
        break;
      case ULX_CASE_JOIN: base = &what.emplace<join_of_c>(given.fiber->ended); break;
      default: throw std::invalid_argument("ulx_select: a case has the kind " + std::to_string(given.what));
    }
  }

  // Takes the received value. For the chosen case.
  void take() noexcept {
    if (auto* const received = std::get_if<receive_of_c>(&what)) {
      if (received->value) {
        received->value->copy_to(of->element);
      } else {
        of->error = ULX_ECLOSED;
      }
    } else if (const auto* const sent = std::get_if<send_of_c>(&what); sent && sent->closed()) {
      of->error = ULX_ECLOSED;
    }
  }
};

// Room for each case and the time. A few are in the frame, the others in memory that a collector sees too.
struct select_room {
  explicit select_room(std::size_t count) {
    if (count <= few) return;
    more_cases = std::make_unique<prepared[]>(count);
    more_pointers = std::make_unique<detail::select_case*[]>(2 * count);
    cases = more_cases.get();
    pointers = more_pointers.get();
  }

  static constexpr std::size_t few = 8;
  prepared in_frame[few];
  detail::select_case* pointers_in_frame[2 * few];
  std::unique_ptr<prepared[]> more_cases;
  std::unique_ptr<detail::select_case*[]> more_pointers;
  prepared* cases = in_frame;
  detail::select_case** pointers = pointers_in_frame;
};

int select_among(std::span<ulx_case> given, std::int64_t deadline, std::size_t* chosen) {
  select_room room(given.size() + 1);
  std::size_t count = 0;
  for (ulx_case& each : given)
    if (each.what != ULX_CASE_OFF) room.cases[count++].prepare(each);
  const bool may_wait = deadline > 0;
  if (count == 0 && deadline == ULX_FOREVER)
    throw usage_error("ulx_select without a case, and without a deadline to wait for");
  if (may_wait && deadline != ULX_FOREVER) {
    prepared& time = room.cases[count++];
    time.base = &time.what.emplace<timer_of_c>(deadline);
  }
  for (std::size_t i = 0; i < count; ++i) room.pointers[i] = room.pointers[count + i] = room.cases[i].base;
  const std::span all(room.pointers, count), by_source(room.pointers + count, count);
  const detail::select_case* const done = detail::choose(all, by_source, false, may_wait);
  if (!done) return ULX_ETIMEDOUT;
  prepared& one = *std::ranges::find(room.cases, room.cases + count, done, &prepared::base);
  if (!one.of) return ULX_ETIMEDOUT;
  one.take();
  *chosen = static_cast<std::size_t>(one.of - given.data());
  return 0;
}

}  // namespace
}  // namespace ulexite::detail::c

using namespace ulexite;
using namespace ulexite::detail::c;

extern "C" {

ulx_channel* ulx_channel_new(size_t element_size, size_t capacity) noexcept {
  return made([&] { return new ulx_channel(element_size, capacity == ULX_UNBOUNDED ? unbounded : capacity); });
}

void ulx_channel_destroy(ulx_channel* channel) noexcept {
  if (!refused_in_handler()) delete channel;
}

int ulx_send(ulx_channel* channel, const void* element, int64_t deadline) noexcept {
  return guarded([&] {
    cell value(element, channel->element_size);
    return to_error(channel->of.send_until(value, to_time(deadline)));
  });
}

int ulx_receive(ulx_channel* channel, void* element, int64_t deadline) noexcept {
  return guarded([&] {
    cell value;
    const int error = to_error(channel->of.receive_until(value, to_time(deadline)));
    if (error == 0) value.copy_to(element);
    return error;
  });
}

int ulx_try_send(ulx_channel* channel, const void* element) noexcept {
  return guarded([&] {
    cell value(element, channel->element_size);
    return to_error(channel->of.try_send(value));
  });
}

int ulx_try_receive(ulx_channel* channel, void* element) noexcept {
  return guarded([&] {
    cell value;
    const int error = to_error(channel->of.try_receive(value));
    if (error == 0) value.copy_to(element);
    return error;
  });
}

bool ulx_close(ulx_channel* channel) noexcept { return !refused_in_handler() && channel->of.close(); }

size_t ulx_channel_length(const ulx_channel* channel) noexcept { return refused_in_handler() ? 0 : channel->of.size(); }

int ulx_select(ulx_case* cases, size_t count, int64_t deadline, size_t* chosen) noexcept {
  return guarded([&] { return select_among(std::span(cases, count), deadline, chosen); });
}
}
