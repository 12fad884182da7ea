#include "queue.hpp"

#include "scripts.hpp"

#include <ulexite/runtime/this_fiber.hpp>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <map>
#include <utility>

namespace jobs {

namespace {

constexpr const char *stream = "jobs", *group = "workers", *later_key = "jobs:later", *dead_key = "jobs:dead",
                     *totals_key = "jobs:totals";

long number_in(std::string_view text) {
  long value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

job job_in(const redis::stream_entry& entry) {
  return {.entry = entry.id,
          .name = std::string(entry.field("job").value_or("")),
          .milliseconds = number_in(entry.field("ms").value_or("0")),
          .kind = std::string(entry.field("kind").value_or("ok")),
          .attempt = number_in(entry.field("attempt").value_or("1"))};
}

std::vector<job> jobs_in(const std::vector<redis::stream_entry>& entries) {
  std::vector<job> found;
  for (const auto& each : entries)
    if (!each.fields.empty()) found.push_back(job_in(each));
  return found;
}

// A list of names and values, as XINFO returns it. Valid as long as the reply.
std::map<std::string_view, redis::reply_view> fields_of(const redis::reply_view& list) {
  std::map<std::string_view, redis::reply_view> found;
  for (std::size_t i = 0; i + 1 < list.size(); i += 2) found.emplace(list[i].text(), list[i + 1]);
  return found;
}

}  // namespace

queue::queue(ulexite::net::address at, std::string consumer, queue_options options)
    : at_(std::move(at)),
      consumer_(std::move(consumer)),
      options_(options),
      commands_(at_, {.size = 16, .on_change = [](std::string_view why) {
                        const std::string text = why.empty() ? "redis is back" : "redis is away: " + std::string(why);
                        std::fprintf(stderr, "jobs: %s\n", text.c_str());
                      }}) {}

void queue::make_group() try {
  command("XGROUP", "CREATE", stream, group, "0", "MKSTREAM");
} catch (const redis::server_error& why) {
  if (why.code() != "BUSYGROUP") throw;
}

bool queue::add(const job& what, long most) {
  return run(scripts::add, {stream}, most, what.name, what.milliseconds, what.kind).integer() != 0;
}

std::vector<job> queue::read(std::ptrdiff_t most) try {
  if (!reading_) reading_.emplace(at_);
  const auto got =
      reading_->command("XREADGROUP", "GROUP", group, consumer_, "COUNT", most, "BLOCK", 500, "STREAMS", stream, ">");
  if (got.is_null()) return {};
  const auto streams = redis::streams_in(got);
  return streams.empty() ? std::vector<job>() : jobs_in(streams.front().second);
} catch (const redis::connection_lost&) {
  reading_.reset();
  ulexite::this_fiber::sleep_for(std::chrono::milliseconds(50));
  return {};
} catch (const redis::server_error& why) {
  if (why.code() == "NOGROUP") make_group();
  ulexite::this_fiber::sleep_for(std::chrono::milliseconds(50));
  if (why.code() != "NOGROUP" && !why.may_succeed_later()) throw;
  return {};
}

std::vector<silent_entry> queue::silent() {
  const auto got = command("XPENDING", stream, group, "IDLE", options_.silence.count(), "-", "+", 64);
  std::vector<silent_entry> found;
  for (const redis::reply_view each : got)
    found.push_back({std::string(each[0].text()), static_cast<long>(each[3].integer())});
  return found;
}

std::vector<job> queue::claim(const std::vector<std::string>& ids) {
  std::vector<redis::argument> words{"XCLAIM", stream, group, consumer_, options_.silence.count()};
  words.insert(words.end(), ids.begin(), ids.end());
  return jobs_in(redis::entries_in(command(words)));
}

long queue::tell(const std::vector<std::string>& ids, std::chrono::milliseconds idle) {
  if (ids.empty()) return 0;
  std::vector<redis::argument> words{"EVAL", scripts::still_mine, 1, stream, group, consumer_, idle.count()};
  words.insert(words.end(), ids.begin(), ids.end());
  return static_cast<long>(command(words).integer());
}

void queue::done(const job& what) { run(scripts::done, {stream}, group, what.entry); }
long queue::count_and_done(const job& what) {
  return static_cast<long>(run(scripts::count_and_done, {stream, "jobs:done:" + what.name, totals_key}, group,
                               what.entry, what.milliseconds, options_.keep.count())
                               .integer());
}
void queue::later(const job& what, std::chrono::milliseconds wait) {
  run(scripts::later, {stream, later_key}, group, what.entry, wait.count(), what.name, what.milliseconds, what.kind,
      what.attempt + 1);
}
void queue::dead(const job& what, std::string_view why) {
  run(scripts::dead, {stream, dead_key}, group, what.entry, what.name, what.milliseconds, what.kind, what.attempt, why);
}
void queue::move_due() { run(scripts::due, {stream, later_key}); }
bool queue::leave() { return run(scripts::leave, {stream}, group, consumer_).integer() != 0; }

void queue::forget_consumers() {
  const auto longest = std::max(std::chrono::milliseconds(5000), 2 * options_.silence).count();
  const auto all = command("XINFO", "CONSUMERS", stream, group);
  for (const redis::reply_view each : all) {
    const auto fields = fields_of(each);
    const std::string_view name = fields.at("name").text();
    if (name != consumer_ && fields.at("pending").integer() == 0 && fields.at("idle").integer() > longest)
      run(scripts::leave, {stream}, group, name);
  }
}

queue_state queue::state() {
  queue_state now;
  const auto groups = command("XINFO", "GROUPS", stream);
  for (const redis::reply_view each : groups) {
    const auto fields = fields_of(each);
    if (fields.at("name").text() != group) continue;
    now.pending = static_cast<long>(fields.at("pending").integer());
    if (const auto lag = fields.find("lag"); lag != fields.end() && lag->second.is_integer())
      now.lag = static_cast<long>(lag->second.integer());
  }
  const auto oldest = command("XPENDING", stream, group, "-", "+", 1);
  if (oldest.size() != 0) now.oldest_idle = std::chrono::milliseconds(oldest[0][2].integer());
  now.length = static_cast<long>(command("XLEN", stream).integer());
  now.later = static_cast<long>(command("ZCARD", later_key).integer());
  now.dead = static_cast<long>(command("XLEN", dead_key).integer());
  return now;
}

std::vector<std::pair<job, std::string>> queue::dead_jobs() {
  std::vector<std::pair<job, std::string>> found;
  for (const auto& each : redis::entries_in(command("XRANGE", dead_key, "-", "+")))
    found.emplace_back(job_in(each), each.field("why").value_or(""));
  return found;
}

void queue::revive(const job& what) {
  run(scripts::revive, {stream, dead_key}, what.entry, what.name, what.milliseconds, what.kind);
}

}  // namespace jobs
