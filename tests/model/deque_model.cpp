// The run queue under Relacy: every item is taken exactly once, by a taker that sees the pusher's writes to it.
//
// Relacy cannot check pairing D (a slot is filled again only after its taker has read it), see relacy_atomics.hpp. It
// holds in C++20: a taker loads the slot before its release of top_. The push that reuses the slot acquires top_.
//
// MUTANT: a_not_released     bottom_ is stored relaxed
// MUTANT: a_not_acquired     top_ and bottom_ are loaded relaxed
// MUTANT: b_no_light_fence   owner and thief both take the last fork
// MUTANT: b_no_heavy_fence   the same
// MUTANT: c_not_exchanged    two takers succeed
// MUTANT: g_not_exchanged    a thief sees the items that the owner has taken back
// MUTANT: f_not_fenced       the pusher of an item does not see the sleeper that does not see the item
// MUTANT: f_not_seq_cst      the sleeper's read of the deque is not ordered after its announcement

#include <ulexite/runtime/queue/deque.hpp>

#include "relacy_atomics.hpp"

enum class mutation {
  none,
  a_not_released,
  a_not_acquired,
  b_no_light_fence,
  b_no_heavy_fence,
  c_not_exchanged,
  g_not_exchanged,
  f_not_fenced,
  f_not_seq_cst
};
constexpr auto mutant = mutation::ULEXITE_MUTANT;

using ulexite::detail::deque_order;

using atomics =
    model::relacy_atomics<model::orders_of<mutant, model::by<mutation::a_not_released, model::release_is_relaxed>,
                                           model::by<mutation::a_not_acquired, model::acquire_is_relaxed>,
                                           model::by<mutation::b_no_light_fence, model::no_light_fence>,
                                           model::by<mutation::b_no_heavy_fence, model::no_heavy_fence>,
                                           model::by<mutation::c_not_exchanged, model::exchange_is_load_and_store>,
                                           model::by<mutation::g_not_exchanged, model::addition_is_load>>>;

using fencing_atomics =
    model::relacy_atomics<model::orders_of<mutant, model::by<mutation::f_not_fenced, model::no_fence>,
                                           model::by<mutation::f_not_seq_cst, model::seq_cst_is_acq_rel>>,
                          true>;

struct item {
  rl::var<int> content;
  bool opaque = false;
  int taken = 0;
};

template <std::size_t Items>
struct items {
  item all[Items];

  item& make(int i) {
    all[i].content($) = i;
    return all[i];
  }
  bool take(item* got) {
    if (!got) return false;
    RL_ASSERT(++got->taken == 1);
    RL_ASSERT(int(got->content($)) == got - all);
    return true;
  }
  void all_taken() {
    for (item& i : all) RL_ASSERT(i.taken == 1);
  }
};

// Fibers. The owner pushes more than the ring holds, pops, evicts, and takes the newest back, also twice in a row. One
// thief steals halves. The other thief steals from the first one, and pops from the owner. A pop shows no opaque item,
// neither one of the owner's nor a stolen one.
template <std::size_t Capacity>
struct fibers_are_taken_once : rl::test_suite<fibers_are_taken_once<Capacity>, 3> {
  static constexpr int count = 6;
  using ring = ulexite::detail::deque<item, Capacity, deque_order::first_in_first_out, atomics>;

  static constexpr auto look = [](item& next, item& after) { RL_ASSERT(!next.opaque && !after.opaque); };

  items<count> made;
  ring owners, thiefs, robbers;

  void thread(unsigned id) {
    if (id == 0) {
      for (int i = 0; i < count; ++i) {
        item& next = made.make(i);
        next.opaque = rl::rand(2);
        while (!(next.opaque ? owners.push_opaque(next) : owners.push(next))) {
          const auto take = [&](item& taken) { made.take(&taken); };
          switch (rl::rand(3)) {
            case 0: made.take(owners.pop_top(look)); break;
            case 1: (void)owners.template evict<Capacity / 2>(take); break;
            default:
              for (unsigned times = 1 + rl::rand(2); times > 0; --times)
                (void)owners.take_newest(1 + rl::rand(Capacity / 2), take);
          }
        }
      }
      made.take(owners.pop_top(look));
    } else if (id == 1) {
      for (unsigned pauses = rl::rand(Capacity * Capacity); pauses > 0; --pauses) atomics::pause(0);
      made.take(owners.steal_half(thiefs));
      made.take(owners.steal_half(thiefs));
      made.take(thiefs.pop_top(look));
    } else {
      made.take(thiefs.steal_half(robbers));
      made.take(owners.pop_top());
      made.take(thiefs.steal_half(robbers));
    }
  }

  void after() {
    for (ring* left : {&owners, &thiefs, &robbers})
      while (made.take(left->pop_top(look))) {
      }
    made.all_taken();
  }
};

// Forks. The owner pushes, and pops at the bottom or the top. There are few items, so it often meets a thief at the
// last one. Sometimes a thief stops early, so that the other one meets the owner alone.
struct forks_are_taken_once : rl::test_suite<forks_are_taken_once, 3> {
  static constexpr int count = 4;

  items<count> made;
  ulexite::detail::deque<item, 2, deque_order::last_in_first_out, atomics> forks;

  void thread(unsigned id) {
    if (id != 0) {
      for (unsigned i = rl::rand(4); i > 0; --i) made.take(forks.steal());
      return;
    }
    for (int i = 0; i < count; ++i) {
      item& next = made.make(i);
      while (!forks.push(next)) pop();
      for (unsigned pops = rl::rand(3); pops > 0; --pops) pop();
    }
    pop();
  }

  void pop() { made.take(rl::rand(4) ? forks.pop_bottom() : forks.pop_oldest()); }

  void after() {
    while (made.take(forks.pop_bottom())) {
    }
    made.all_taken();
  }
};

// The answer of may_have_items to a sleeper that has announced itself. It is never false for an item if the item's
// pusher has not seen the announcement. The sleep of a worker depends on that (idle.hpp A).
struct no_item_is_overlooked : rl::test_suite<no_item_is_overlooked, 2> {
  item only;
  ulexite::detail::deque<item, 2, deque_order::first_in_first_out, fencing_atomics> ring;
  fencing_atomics::atomic<unsigned> announced;
  bool seen_announced = false, seen_item = false;

  void thread(unsigned id) {
    if (id == 0) {
      (void)ring.push(only);
      seen_announced = fencing_atomics::load_after_fence(announced) != 0;
    } else {
      announced.fetch_add(1, rl::mo_seq_cst);
      seen_item = ring.may_have_items();
    }
  }

  void after() { RL_ASSERT(seen_announced || seen_item); }
};

int main() {
  if (!model::holds<fibers_are_taken_once<2>>(400'000) || !model::holds<fibers_are_taken_once<4>>(400'000)) return 1;
  if (!model::holds<fibers_are_taken_once<8>>(100'000)) return 1;
  if (!model::holds<forks_are_taken_once>(1'000'000)) return 1;
  for (const bool by_exchange : {false, true}) {
    model::fence_by_exchange = by_exchange;
    if (!model::holds<no_item_is_overlooked>(50'000)) return 1;
  }
}
