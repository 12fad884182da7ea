#pragma once

// The scripts of the queue. Each is carried out as a whole. Those that end an entry first look whether it is still
// there, so that a repetition after an unknown outcome does nothing; that of count_and_done counts the job as repeated.

#include <ulexite/interop/redis_script.hpp>

namespace jobs::scripts {

namespace redis = ulexite::redis;

inline const redis::script add(R"(
if redis.call('XLEN', KEYS[1]) >= tonumber(ARGV[1]) then return 0 end
redis.call('XADD', KEYS[1], '*', 'job', ARGV[2], 'ms', ARGV[3], 'kind', ARGV[4], 'attempt', 1)
return 1)");

inline const redis::script done(R"(
redis.call('XACK', KEYS[1], ARGV[1], ARGV[2])
return redis.call('XDEL', KEYS[1], ARGV[2]))");

inline const redis::script count_and_done(R"(
local times = redis.call('INCR', KEYS[2])
redis.call('EXPIRE', KEYS[2], ARGV[4])
if times == 1 then redis.call('HINCRBY', KEYS[3], 'ms', ARGV[3]) end
redis.call('XACK', KEYS[1], ARGV[1], ARGV[2])
redis.call('XDEL', KEYS[1], ARGV[2])
return times)");

inline const redis::script later(R"(
if redis.call('XDEL', KEYS[1], ARGV[2]) == 0 then return 0 end
redis.call('XACK', KEYS[1], ARGV[1], ARGV[2])
local now = redis.call('TIME')
redis.call('ZADD', KEYS[2], now[1] * 1000 + math.floor(now[2] / 1000) + ARGV[3],
           cjson.encode({ARGV[4], ARGV[5], ARGV[6], ARGV[7]}))
return 1)");

inline const redis::script dead(R"(
if redis.call('XDEL', KEYS[1], ARGV[2]) == 0 then return 0 end
redis.call('XACK', KEYS[1], ARGV[1], ARGV[2])
redis.call('XADD', KEYS[2], '*', 'job', ARGV[3], 'ms', ARGV[4], 'kind', ARGV[5], 'attempt', ARGV[6], 'why', ARGV[7])
return 1)");

inline const redis::script revive(R"(
if redis.call('XDEL', KEYS[2], ARGV[1]) == 0 then return 0 end
redis.call('XADD', KEYS[1], '*', 'job', ARGV[2], 'ms', ARGV[3], 'kind', ARGV[4], 'attempt', 1)
return 1)");

inline const redis::script due(R"(
local now = redis.call('TIME')
local all = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now[1] * 1000 + math.floor(now[2] / 1000), 'LIMIT', 0, 100)
for _, each in ipairs(all) do
  local job = cjson.decode(each)
  redis.call('XADD', KEYS[1], '*', 'job', job[1], 'ms', job[2], 'kind', job[3], 'attempt', job[4])
  redis.call('ZREM', KEYS[2], each)
end
return #all)");

// XGROUP DELCONSUMER would lose what is pending.
inline const redis::script leave(R"(
if redis.call('XPENDING', KEYS[1], ARGV[1], '-', '+', 1, ARGV[2])[1] then return 0 end
redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], ARGV[2])
return 1)");

// For any number of entries, so it is sent by EVAL. ARGV: the group, the consumer, the idle time, the entries. With an
// idle time the consumer gives them back, and the delivery does not count, because its process did not die of it.
inline constexpr const char* still_mine = R"(
local mine = 0
for i = 4, #ARGV do
  local p = redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[i], ARGV[i], 1)
  if p[1] and p[1][2] == ARGV[2] then
    local count = p[1][4]
    if p[1][3] < tonumber(ARGV[3]) then count = math.max(count - 1, 0) end
    redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[2], 0, ARGV[i], 'IDLE', ARGV[3], 'RETRYCOUNT', count, 'JUSTID')
    mine = mine + 1
  end
end
return mine)";

}  // namespace jobs::scripts
