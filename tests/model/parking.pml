/* How workers sleep and are woken: runtime/park/parker.hpp and idle.hpp, used as scheduler.cpp does.
 *
 * N workers, of which STARTED run from the beginning; the others are started when somebody is needed, and the machine
 * refuses REFUSALS times. OUTSIDE threads publish JOBS jobs each into the shared queue. A job may publish another, PUSHES
 * in all, into the own queue of its worker, and may then keep the worker for ever: so nothing may rest on a worker's
 * coming back. EVENTS events come from outside; nobody announces them, the event loop must be watched.
 *
 * Memory is x86's: a push to an own queue stays in the store buffer until a fence, a locked instruction or any moment
 * later. All else here is done by locked instructions.
 *
 *   EAGER     a worker that ends its search, or polled, wakes a sleeper if nobody watches the loop: 0 never, 1 always,
 *             2 now and then
 *   MONITOR   a monitor does that
 *   KEPT      a worker may publish without notify: for a push to its own queue (wake_policy.hpp)
 *   DECLINE   a searcher may leave another's queue alone (victims.hpp); 2: and RECHECK may, too
 *   STALE     the counts by which a worker decides whether to search may be old ones
 *   RESIZED   the limit of awake workers falls from N to 1; 2: and rises again
 * and the safeguards, each of which can be taken away:
 *   FENCE     between publishing and reading the counts
 *   RECHECK   a look at the queues after having announced to sleep
 *   LAST      a look at the queues by the last searcher
 *   REFUSED   a look at the queues after a refused start
 *   MOVED     notify after jobs went from the shared to an own queue
 *   SURPLUS   notify after one turn of the loop brought several
 *   STICKY    a wake of the loop is not lost if nobody is in it yet
 *   STARTS    the monitor starts a worker if all are busy and none watches the loop
 *   RELIEF    the monitor notifies for what is queued behind a fiber that never lets go
 *   DECIDED   a worker decides only when it has announced to sleep that it is surplus, and does not look at the queues
 *   RAISED    a look at the queues after the limit has risen
 *   LEAVES    the last worker that the limit allows to wake is the one in the loop
 *
 * When nothing can move any more, no job and no event may be left while a worker sleeps, or could be started, that
 * would take it, and that the limit allows; if all sleep, one of them is in the event loop; at the limit nobody is
 * there; and nobody counts as searching.
 */
/* RUN: -DN=2 -DOUTSIDE=1 -DJOBS=2 -DPUSHES=1 */
/* RUN: -DN=2 -DOUTSIDE=2 -DJOBS=1 -DPUSHES=1 -DSTALE=1 */
/* RUN: -DN=3 -DOUTSIDE=1 -DJOBS=1 -DPUSHES=1 */
/* RUN: -DN=2 -DSTARTED=1 -DREFUSALS=1 -DOUTSIDE=2 -DJOBS=1 -DPUSHES=0 */
/* RUN: -DN=2 -DOUTSIDE=1 -DJOBS=1 -DPUSHES=0 -DEVENTS=1 -DEAGER=2 -DMONITOR=1 */
/* RUN: -DN=2 -DOUTSIDE=0 -DPUSHES=0 -DEVENTS=2 -DEAGER=2 -DMONITOR=1 */
/* RUN: -DN=2 -DSTARTED=1 -DREFUSALS=1 -DOUTSIDE=1 -DJOBS=1 -DPUSHES=0 -DEVENTS=1 -DEAGER=2 -DMONITOR=1 */
/* RUN: -DN=2 -DOUTSIDE=2 -DJOBS=2 -DPUSHES=1 */
/* RUN: -DN=3 -DOUTSIDE=1 -DJOBS=2 -DPUSHES=1 */
/* RUN: -DN=3 -DSTARTED=1 -DREFUSALS=1 -DOUTSIDE=1 -DJOBS=2 -DPUSHES=1 */
/* RUN: -DN=3 -DOUTSIDE=0 -DPUSHES=0 -DEVENTS=2 -DEAGER=2 -DMONITOR=1 */
/* RUN: -DN=2 -DOUTSIDE=1 -DJOBS=1 -DPUSHES=2 -DKEPT=1 -DMONITOR=1 */
/* RUN: -DN=2 -DOUTSIDE=0 -DPUSHES=1 -DEVENTS=2 -DKEPT=1 -DEAGER=2 -DMONITOR=1 */
/* RUN: -DN=2 -DSTARTED=1 -DOUTSIDE=1 -DJOBS=1 -DPUSHES=1 -DKEPT=1 -DMONITOR=1 */
/* RUN: -DN=2 -DOUTSIDE=1 -DJOBS=1 -DPUSHES=2 -DDECLINE=1 */
/* RUN: -DN=2 -DOUTSIDE=0 -DPUSHES=1 -DEVENTS=2 -DKEPT=1 -DEAGER=2 -DMONITOR=1 -DDECLINE=1 */
/* RUN: -DN=2 -DOUTSIDE=2 -DJOBS=1 -DPUSHES=1 -DRESIZED=1 */
/* RUN: -DN=2 -DOUTSIDE=1 -DJOBS=1 -DPUSHES=1 -DRESIZED=2 */
/* RUN: -DN=2 -DOUTSIDE=1 -DJOBS=1 -DPUSHES=0 -DEVENTS=1 -DEAGER=2 -DMONITOR=1 -DRESIZED=2 */
/* RUN: -DN=3 -DOUTSIDE=1 -DJOBS=1 -DPUSHES=0 -DRESIZED=2 */
/* MUTANT: -DFENCE=0 */
/* MUTANT: -DRECHECK=0 */
/* MUTANT: -DDECLINE=2 */
/* MUTANT: -DLAST=0 -DOUTSIDE=2 -DJOBS=1 */
/* MUTANT: -DREFUSED=0 -DSTARTED=1 -DREFUSALS=1 -DOUTSIDE=2 -DJOBS=1 -DPUSHES=0 */
/* MUTANT: -DMOVED=0 -DOUTSIDE=1 -DJOBS=2 -DPUSHES=0 */
/* MUTANT: -DSURPLUS=0 -DOUTSIDE=0 -DPUSHES=0 -DEVENTS=2 -DMONITOR=1 */
/* MUTANT: -DSTICKY=0 */
/* MUTANT: -DEVENTS=1 -DPUSHES=0 -DEAGER=0 -DMONITOR=0 */
/* MUTANT: -DOUTSIDE=0 -DEVENTS=2 -DPUSHES=0 -DEAGER=1 -DMONITOR=0 */
/* MUTANT: -DSTARTS=0 -DSTARTED=1 -DEVENTS=1 -DPUSHES=0 -DEAGER=2 -DMONITOR=1 */
/* MUTANT: -DOUTSIDE=1 -DJOBS=1 -DPUSHES=1 -DKEPT=1 -DMONITOR=1 -DRELIEF=0 */
/* MUTANT: -DRESIZED=1 -DDECIDED=0 -DPUSHES=0 */
/* MUTANT: -DRESIZED=2 -DRAISED=0 */
/* MUTANT: -DRESIZED=1 -DLEAVES=0 -DPUSHES=0 */

#ifndef N
#define N 2
#endif
#ifndef STARTED
#define STARTED N
#endif
#ifndef REFUSALS
#define REFUSALS 0
#endif
#ifndef OUTSIDE
#define OUTSIDE 1
#endif
#ifndef JOBS
#define JOBS 1
#endif
#ifndef PUSHES
#define PUSHES 1
#endif
#ifndef EVENTS
#define EVENTS 0
#endif
#ifndef EAGER
#define EAGER 0
#endif
#ifndef MONITOR
#define MONITOR 0
#endif
#ifndef KEPT
#define KEPT 0
#endif
#ifndef DECLINE
#define DECLINE 0
#endif
#ifndef RELIEF
#define RELIEF 1
#endif
#ifndef STALE
#define STALE 0
#endif
#ifndef RESIZED
#define RESIZED 0
#endif
#ifndef DECIDED
#define DECIDED 1
#endif
#ifndef RAISED
#define RAISED 1
#endif
#ifndef LEAVES
#define LEAVES 1
#endif
#ifndef FENCE
#define FENCE 1
#endif
#ifndef RECHECK
#define RECHECK 1
#endif
#ifndef LAST
#define LAST 1
#endif
#ifndef REFUSED
#define REFUSED 1
#endif
#ifndef MOVED
#define MOVED 1
#endif
#ifndef SURPLUS
#define SURPLUS 1
#endif
#ifndef STICKY
#define STICKY 1
#endif
#ifndef STARTS
#define STARTS 1
#endif

#define NOBODY 9
#define OUTSIDER N /* the number of all who are no workers; its queue stays empty */

/* the queues: shared, each worker's own, and what is still in its processor's store buffer of it */
byte injected, ring[N + 1], buffered[N + 1];
bit stuck[N]; /* in a fiber that never lets go */
#if N == 2
#define queued (injected + ring[0] + ring[1])
#else
#define queued (injected + ring[0] + ring[1] + ring[2])
#endif
#if N == 2
#define behind_stuck (ring[0] * stuck[0] + ring[1] * stuck[1] > 0)
#else
#define behind_stuck (ring[0] * stuck[0] + ring[1] * stuck[1] + ring[2] * stuck[2] > 0)
#endif
#define any_work (queued > 0) /* by a caller whose store buffer is empty */

/* the idle word */
byte searching, sleeping, started = STARTED;
#define awake (started - sleeping)
#define wanted (searching == 0 && awake < limit)
byte limit = N;

/* guarded by the mutex */
bit mutex, on_condition[N], notified[N];
byte in_loop = NOBODY;
bit suspended; /* a start was refused: none is tried again */
#if N == 2
#define somebody_on_condition (on_condition[0] || on_condition[1])
#else
#define somebody_on_condition (on_condition[0] || on_condition[1] || on_condition[2])
#endif
#define startable (started < N && !suspended)
#define wakeable (awake < limit && (sleeping > 0 || startable))
#define loop_is_last (LEAVES && in_loop != NOBODY && awake + 1 >= limit)

/* the event loop */
byte poller = NOBODY, event, events_to_come = EVENTS;
bit loop_woken, blocked;
#define nobody_polls (sleeping > 0 && awake < limit && searching == 0 && poller == NOBODY)
#define unstarted_could_poll (STARTS && startable && awake < limit && searching == 0 && poller == NOBODY)

byte threads_started = STARTED, refusals = REFUSALS, pushes = PUSHES;
bit go[N];

inline drain() { ring[me] = ring[me] + buffered[me]; buffered[me] = 0 }
inline lock() { atomic { !mutex -> mutex = 1; drain() } }
inline unlock() { atomic { drain(); mutex = 0 } }

inline pass_search_role(who) { sleeping--; searching++; notified[who] = 1 }

inline wake_loop() {
  atomic {
    loop = 0;
    if
    :: STICKY || blocked -> loop_woken = 1
    :: else
    fi
  }
}

inline wake_one() {
  do
  :: lock();
     atomic {
       loop = 0; start = 0;
       if
       :: wanted && !loop_is_last && on_condition[0] -> on_condition[0] = 0; pass_search_role(0)
       :: wanted && !loop_is_last && on_condition[1] -> on_condition[1] = 0; pass_search_role(1)
#if N > 2
       :: wanted && !loop_is_last && on_condition[2] -> on_condition[2] = 0; pass_search_role(2)
#endif
       :: wanted && (loop_is_last || !somebody_on_condition) && in_loop != NOBODY ->
          pass_search_role(in_loop); in_loop = NOBODY; loop = 1
       :: wanted && !somebody_on_condition && in_loop == NOBODY && startable ->
          started++; searching++; start = 1
       :: !wanted || (!somebody_on_condition && in_loop == NOBODY && !startable)
       fi
     };
     unlock();
     if
     :: loop -> wake_loop(); break
     :: atomic { start -> go[threads_started] = 1; threads_started++; start = 0 }; break
     :: atomic { start && refusals > 0 -> refusals--; suspended = 1; start = 0 };
        lock();
        atomic { started--; searching--; last = (searching == 0) };
        unlock();
        atomic {
          if
          :: REFUSED && last && any_work -> last = 0
          :: else -> last = 0; break
          fi
        }
     :: !loop && !start -> break
     fi
  od
}

inline notify() {
#if FENCE
  atomic { drain() };
#endif
  if
  :: wanted -> wake_one()
  :: else
  fi
}

inline set_limit(to) {
  lock();
  atomic {
    limit = to;
    if
    :: in_loop != NOBODY && awake >= limit -> pass_search_role(in_loop); in_loop = NOBODY; loop = 1
    :: else
    fi
  };
  unlock();
  if
  :: loop -> wake_loop()
  :: else
  fi;
  if
  :: RAISED && wanted ->
     if
     :: any_work -> wake_one()
     :: else
     fi
  :: else
  fi
}

/* after a push to the own queue */
inline notify_or_keep() {
  if
  :: notify()
  :: KEPT
  fi
}

inline end_search() {
  if
  :: searcher ->
     atomic { drain(); searching--; searcher = 0; last = (searching == 0) };
     atomic {
       if
       :: LAST && last && any_work -> wake = 1
       :: LAST && last && EAGER && nobody_polls -> wake = 1
       :: !(LAST && last && (any_work || (EAGER == 1 && nobody_polls)))
       fi;
       last = 0
     };
     if
     :: wake -> wake = 0; wake_one()
     :: else
     fi
  :: else
  fi
}

proctype worker(byte me) {
  byte events;
  bit loop, start, last, wake; /* wake_one's and end_search's */
  bit searcher, moved, surplus;
  if
  :: me >= STARTED
end_unstarted:
     go[me]; searcher = 1
  :: else
  fi;

next:
#if RESIZED
  /* a surplus worker leaves its work to the others */
  surplus = (awake > limit);
  if
  :: surplus ->
     end_search();
     atomic { drain(); injected = injected + ring[me]; ring[me] = 0 };
     notify();
     goto park
  :: else
  fi;
#endif
#if EVENTS
  /* now and then a turn of the loop without blocking, all of whose events go to the own queue */
  if
  :: atomic { !searcher && poller == NOBODY -> poller = me };
     atomic { drain(); events = event; event = 0; loop_woken = 0 };
     poller = NOBODY;
     if
     :: events > 0 -> atomic { buffered[me] = buffered[me] + events; events = 0 }; notify()
     :: else
     fi;
     if
     :: EAGER && nobody_polls -> wake_one()
     :: !(EAGER == 1 && nobody_polls)
     fi
  :: skip
  fi;
#endif

  if
  :: atomic { ring[me] + buffered[me] > 0 -> drain(); ring[me]-- }; goto run_it
  :: atomic { ring[me] + buffered[me] == 0 && injected > 0 -> injected-- };
take_injected:
     /* perhaps with another one, which is in no queue for a moment */
     if
     :: atomic { injected > 0 -> injected--; moved = 1 };
        atomic { buffered[me]++; moved = 0 };
#if MOVED
        notify()
#endif
     :: skip
     fi;
     goto run_it
  :: atomic { ring[me] + buffered[me] == 0 && injected == 0 }
  fi;

  if
  :: searcher
  :: atomic { !searcher && (STALE || (awake > 1 && 2 * searching < awake)) -> drain(); searching++; searcher = 1 }
  :: !searcher && (STALE || !(awake > 1 && 2 * searching < awake)) -> goto park
  fi;
  if
  :: atomic { injected > 0 -> injected-- }; goto take_injected
  :: injected == 0
  fi;
  if
  :: atomic { ring[(me + 1) % N] > 0 -> ring[(me + 1) % N]-- }; goto run_it
  :: ring[(me + 1) % N] == 0 || DECLINE
  fi;
#if N > 2
  if
  :: atomic { ring[(me + 2) % N] > 0 -> ring[(me + 2) % N]-- }; goto run_it
  :: ring[(me + 2) % N] == 0 || DECLINE
  fi;
#endif
#if EVENTS
  if
  :: atomic { poller == NOBODY -> poller = me };
     atomic { drain(); events = event; event = 0; loop_woken = 0 };
     poller = NOBODY;
     if
     :: events > 0 -> goto distribute
     :: else
     fi
  :: poller != NOBODY
  fi;
#endif

park:
  lock();
  atomic {
    sleeping++; searching = searching - searcher; searcher = 0;
    surplus = (awake >= limit || (surplus && !DECIDED))
  };
#if RECHECK
  if
  :: !surplus && (injected > 0 || (any_work && DECLINE < 2)) -> atomic { sleeping--; searching++; searcher = 1 }; unlock(); goto next
  :: else
  fi;
#endif
  if
  :: atomic { !surplus && poller == NOBODY -> poller = me; in_loop = me };
     unlock();
     blocked = 1;
end_in_loop:
     atomic { (loop_woken || event > 0) -> blocked = 0; loop_woken = 0; events = event; event = 0 };
     lock();
     atomic {
       poller = NOBODY;
       if
       :: notified[me] -> notified[me] = 0; searcher = 1
       :: else -> in_loop = NOBODY; sleeping--
       fi
     };
     unlock();
     if
     :: events > 0 -> end_search(); goto distribute
     :: else -> goto next
     fi
  :: atomic { surplus || poller != NOBODY -> on_condition[me] = 1; mutex = 0 };
end_on_condition:
     atomic { notified[me] && !mutex -> notified[me] = 0; searcher = 1 };
     goto next
  fi;

distribute: /* the first event's fiber runs at once, the others go to the own queue */
  atomic { buffered[me] = buffered[me] + events - 1; wake = (events > 1); events = 0 };
  if
  :: SURPLUS && wake -> wake = 0; notify()
  :: else -> wake = 0
  fi;

run_it:
  end_search();
  if
  :: atomic { pushes > 0 -> pushes--; buffered[me]++ }; notify_or_keep()
  :: skip
  fi;
  if
  :: goto next
  :: stuck[me] = 1 /* a fiber that never lets go */
  fi
}

proctype store_buffers() {
end: do
  :: atomic { buffered[0] > 0 -> ring[0] = ring[0] + buffered[0]; buffered[0] = 0 }
  :: atomic { buffered[1] > 0 -> ring[1] = ring[1] + buffered[1]; buffered[1] = 0 }
#if N > 2
  :: atomic { buffered[2] > 0 -> ring[2] = ring[2] + buffered[2]; buffered[2] = 0 }
#endif
  od
}

proctype outsider() {
  byte me = OUTSIDER, jobs = JOBS;
  bit loop, start, last;
  do
  :: atomic { jobs > 0 -> jobs--; injected++ }; notify()
  :: jobs == 0 -> break
  od
}

proctype owner() {
  byte me = OUTSIDER;
  bit loop, start, last;
  set_limit(1)
#if RESIZED > 1
  ; set_limit(N)
#endif
}

proctype kernel() {
  do
  :: atomic { events_to_come > 0 -> events_to_come--; event++ }
  :: events_to_come == 0 -> break
  od
}

proctype monitor() {
  byte me = OUTSIDER;
  bit loop, start, last;
end: do
  :: nobody_polls || unstarted_could_poll -> wake_one()
  :: RELIEF && KEPT && behind_stuck && searching == 0 && wakeable -> wake_one()
  od
}

proctype at_rest() {
end: timeout;
  assert(!(any_work && wakeable));
  assert(!(event > 0 && wakeable));
  assert(in_loop == NOBODY || awake < limit);
  assert(!(started > 0 && sleeping == started) || (in_loop != NOBODY && poller == in_loop));
  assert(searching == 0)
}

init {
  atomic {
    byte i;
    for (i : 0 .. N - 1) { run worker(i) };
#if OUTSIDE
    for (i : 1 .. OUTSIDE) { run outsider() };
#endif
    run store_buffers();
    run at_rest();
#if RESIZED
    run owner();
#endif
#if EVENTS
    run kernel();
#endif
#if MONITOR
    run monitor();
#endif
  }
}
