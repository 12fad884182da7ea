/* When a fiber that suspends may be seen by others. Each of two workers runs a fiber that suspends, and takes next
 * the one that the other worker has published. A fiber can be resumed once its context is saved, which happens when its
 * worker switches away from it: to the next fiber or to the main stack.
 *
 *   AFTER_SWITCH=1   as in scheduler.cpp: the successor publishes the fiber that was left, and a resumer checks the
 *                    flag but never waits for it: it always finds it set.
 *   AFTER_SWITCH=0   the fiber publishes itself and then switches; a resumer spins until the flag is set. It spins on the
 *                    stack of its own fiber, which so is never saved: two workers wait for each other's for ever.
 */
/* RUN: -DAFTER_SWITCH=1 */
/* MUTANT: -DAFTER_SWITCH=0 */

#ifndef AFTER_SWITCH
#define AFTER_SWITCH 1
#endif

bit queued[2], resumable[2];

proctype worker(byte me) {
  byte other = 1 - me;
  bit found;
#if AFTER_SWITCH
  atomic { found = queued[other]; queued[other] = 0 }; /* chosen before the switch, still on the fiber's stack */
  if
  :: found -> assert(resumable[other]); resumable[other] = 0
  :: else
  fi;
  resumable[me] = 1; /* switched: the context is saved */
  queued[me] = 1     /* published by the successor */
#else
  queued[me] = 1;
  atomic { found = queued[other]; queued[other] = 0 };
  if
  :: found -> resumable[other]; resumable[other] = 0
  :: else
  fi;
  resumable[me] = 1
#endif
}

init { atomic { run worker(0); run worker(1) } }
