#pragma once

// What a thief has seen of the other workers. It leaves a worker alone that serves its queue faster than fibers move
// to another core. But such a queue may last, because its fibers come back. So one theft is tried now and then: the
// next one soon, if this one keeps the thief busy for long, and otherwise later each time. A busy worker looks too, for
// others that stand still. Owner only.

#include <ulexite/base/random.hpp>
#include <ulexite/runtime/worker_parts/tuning.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ulexite::detail {

class victims {
 public:
  victims(std::uint64_t seed, std::size_t workers) : random_(seed), seen_(workers) {}

  // Whether to look at that worker now. It is left alone for twice as long each time that it was found to be fast,
  // because each look takes a cache line from it.
  // `least`: the shortest time between two looks.
  [[nodiscard]] bool may_look(std::size_t victim, std::int64_t now, std::int64_t least) const noexcept {
    return now >= seen_[victim].next && now - seen_[victim].time >= least;
  }
  // What a worker has done so far, modulo 2^32.
  struct progress {
    std::uint32_t dispatches = 0, spawned = 0;
    friend constexpr bool operator==(progress, progress) noexcept = default;
  };
  enum class worth : std::uint8_t {
    nothing,
    woken,  // but not the ring
    all,
  };
  // What to steal from that worker, which has `queued` fibers: all if it has done little since the last look, or a
  // theft is tried. A spawner dispatches nothing, so the fibers that it spawns protect its ring, where they are.
  [[nodiscard]] worth look(std::size_t victim, progress done, std::size_t queued, std::int64_t now) noexcept {
    sight& last = seen_[victim];
    const std::int64_t passed = now - last.time;
    const auto few = [&](std::uint32_t number) { return passed >= number * tuning::transfer_cost; };
    const std::uint32_t ran = done.dispatches - last.done.dispatches, made = done.spawned - last.done.spawned;
    // What was seen before this search is too old; the thief looks again in the next round.
    const bool stale = passed > 2 * tuning::longest_look_away && last.time < search_began_;
    worth what = worth::nothing;
    if (!stale && few(ran)) what = worth::woken;
    if (!stale && few(made) && (few(ran + made) || (queued > 0 && may_try(now)))) what = worth::all;
    const bool again = what == worth::all || stale;
    last = {done, now, again ? now : now + std::min(2 * passed, tuning::longest_look_away)};
    return what;
  }
  // Whether that worker has done nothing since the last look: it runs a long fiber, its thread has lost its processor,
  // or it sleeps.
  [[nodiscard]] bool stood_still(std::size_t victim, progress done, std::int64_t now) noexcept {
    sight& last = seen_[victim];
    const bool nothing_done = done == last.done;
    last = {done, now, last.next};
    return nothing_done;
  }

  // The thief is out of work, and begins a search or sleeps. Until now it was busy with what the last try has brought.
  void out_of_work(std::int64_t now) noexcept {
    search_began_ = now;
    if (tried_ == 0) return;
    const bool paid = now - tried_ >= tuning::worth_a_try;
    try_pause_ = tuning::next_pause(paid, try_pause_, tuning::shortest_pause, tuning::longest_pause);
    next_try_ = now + try_pause_;
    tried_ = 0;
  }

  // The number of the worker that a search tries first, of `workers`.
  [[nodiscard]] std::size_t first(std::size_t workers) noexcept {
    return random_.below(static_cast<std::uint32_t>(workers));
  }

 private:
  struct sight {
    progress done;
    std::int64_t time = 0;
    std::int64_t next = 0;
  };

  [[nodiscard]] bool may_try(std::int64_t now) noexcept {
    if (now < next_try_) return false;
    tried_ = now;
    return true;
  }

  random random_;
  std::vector<sight> seen_;
  std::int64_t search_began_ = 0;
  std::int64_t tried_ = 0;  // when a theft was tried; 0: none is to be judged
  std::int64_t try_pause_ = 0, next_try_ = 0;
};

}  // namespace ulexite::detail
