#include <ulexite/interop/c/handles.hpp>
#include <ulexite/runtime/block_in_place.hpp>
#include <ulexite/runtime/migration_guard.hpp>
#include <ulexite/runtime/no_suspend.hpp>
#include <ulexite/runtime/on_thread_stack.hpp>
#include <ulexite/sync/fiber_local.hpp>

#include <string>

namespace ulexite::detail::c {
namespace {

// In C no scope ends a guard. So a fiber has a list of guards of each kind, the youngest first.
template <class Guard>
struct guards {
  guards() = default;
  guards(const guards&) = delete;
  guards& operator=(const guards&) = delete;
  ~guards() {
    while (youngest) pop();
  }

  struct entry : in_embedders_memory {
    entry* outer = nullptr;
    Guard guard;
  };
  void push() {
    auto made = std::make_unique<entry>();
    made->outer = youngest;
    youngest = made.release();
  }
  void pop() noexcept {
    entry* const last = youngest;
    youngest = last->outer;
    delete last;
  }
  entry* youngest = nullptr;
};

struct waits_are_refused : no_suspend_scope {
  waits_are_refused() : no_suspend_scope("ulx_forbid_waiting") {}
};

fiber_local<guards<no_migration_scope>>& pins() {
  static fiber_local<guards<no_migration_scope>> all;
  return all;
}
fiber_local<guards<waits_are_refused>>& bans() {
  static fiber_local<guards<waits_are_refused>> all;
  return all;
}

template <class Guards>
int push(Guards& all) noexcept {
  return guarded([&] {
    all.get().push();
    return 0;
  });
}

template <class Guards>
int pop(Guards& all, const char* operation, const char* before) noexcept {
  return guarded([&] {
    if (!all.get().youngest) throw usage_error(std::string(operation) + " without " + before);
    all.get().pop();
    return 0;
  });
}

}  // namespace
}  // namespace ulexite::detail::c

using namespace ulexite;
using namespace ulexite::detail::c;

extern "C" {

ulx_strand* ulx_strand_new(ulx_runtime* runtime, const char* name) noexcept {
  return made([&] { return new ulx_strand(runtime ? runtime->of : current_runtime(), name); });
}

int ulx_strand_destroy(ulx_strand* strand) noexcept {
  return guarded([&] {
    if (!strand) return 0;
    detail::context_access::check_may_be_waited_for(strand->of);  // a request to stop cannot be undone
    strand->of.request_stop();
    strand->of.wait();
    delete strand;
    return 0;
  });
}

int ulx_strand_wait(ulx_strand* strand) noexcept {
  return guarded([&] {
    strand->of.wait();
    return 0;
  });
}

int ulx_migrate_to(ulx_strand* strand) noexcept {
  return guarded([&] {
    if (strand) {
      this_fiber::migrate_to(strand->of);
    } else {
      this_fiber::migrate_to(current_runtime());
    }
    return 0;
  });
}

int ulx_pin(void) noexcept { return push(pins()); }
int ulx_unpin(void) noexcept { return pop(pins(), "ulx_unpin", "ulx_pin"); }
int ulx_forbid_waiting(void) noexcept { return push(bans()); }
int ulx_allow_waiting(void) noexcept { return pop(bans(), "ulx_allow_waiting", "ulx_forbid_waiting"); }

int ulx_on_thread_stack(void (*function)(void*), void* argument) noexcept {
  return guarded([&] {
    if (!function) throw usage_error("ulx_on_thread_stack without a function");
    on_thread_stack([&] { function(argument); });
    return 0;
  });
}

void ulx_block_enter(ulx_block* block) noexcept {
  static_assert(sizeof(detail::worker_handoff) <= sizeof block->opaque &&
                alignof(detail::worker_handoff) <= alignof(ulx_block));
  if (!refused_in_handler()) new (block->opaque) detail::worker_handoff;
}

void ulx_block_leave(ulx_block* block) noexcept {
  if (!refused_in_handler()) std::launder(reinterpret_cast<detail::worker_handoff*>(block->opaque))->~worker_handoff();
}
}
