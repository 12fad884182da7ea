#pragma once

// Coroutines as fibers that have a stack only while they run.

#include <ulexite/coroutine/await.hpp>
#include <ulexite/coroutine/channels.hpp>
#include <ulexite/coroutine/locks.hpp>
#include <ulexite/coroutine/net.hpp>
#include <ulexite/coroutine/select.hpp>
#include <ulexite/coroutine/task.hpp>
#include <ulexite/coroutine/waits.hpp>
