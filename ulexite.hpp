#pragma once

// All of Ulexite but the bridges in <ulexite/interop/...>.

#include <ulexite/base/error.hpp>
#include <ulexite/net/endpoint.hpp>
#include <ulexite/net/io_wait.hpp>
#include <ulexite/net/resolve.hpp>
#include <ulexite/net/tcp.hpp>
#include <ulexite/runtime/jobs.hpp>
#include <ulexite/runtime/runtime.hpp>
#include <ulexite/runtime/spawn.hpp>
#include <ulexite/runtime/this_fiber.hpp>
#include <ulexite/sync/barrier.hpp>
#include <ulexite/sync/call_once.hpp>
#include <ulexite/sync/cancellation.hpp>
#include <ulexite/sync/channel.hpp>
#include <ulexite/sync/condition_variable.hpp>
#include <ulexite/sync/condition_variable_any.hpp>
#include <ulexite/sync/event.hpp>
#include <ulexite/sync/fiber_local.hpp>
#include <ulexite/sync/future.hpp>
#include <ulexite/sync/latch.hpp>
#include <ulexite/sync/mutex.hpp>
#include <ulexite/sync/recursive_mutex.hpp>
#include <ulexite/sync/select.hpp>
#include <ulexite/sync/selector.hpp>
#include <ulexite/sync/semaphore.hpp>
#include <ulexite/sync/shared_mutex.hpp>
#include <ulexite/sync/synchronized.hpp>
#include <ulexite/sync/task_group.hpp>
#include <ulexite/sync/ticker.hpp>
#include <ulexite/sync/timed_mutex.hpp>
#include <ulexite/sync/wait_group.hpp>
#include <ulexite/sync/when.hpp>
