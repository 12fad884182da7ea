#include "counters.hpp"

#include <charconv>
#include <system_error>
#include <vector>

namespace redis_counter {
namespace {

constexpr std::string_view prefix = "counter:";  // of the keys

std::string key_of(std::string_view name) { return std::string(prefix).append(name); }

failure refusal(const redis::server_error& why) {
  const std::string_view text = why.what();
  const auto says = [&](const char* part) { return text.find(part) != text.npos; };
  const bool unfit = says("WRONGTYPE") || says("not an integer") || says("overflow");
  return failure(unfit ? failure::unfit : failure::refused, "redis refused: " + std::string(text));
}

// nullopt if there is no value, or it is not a number.
std::optional<std::int64_t> number_in(const redis::reply_view& reply) {
  if (!reply.is_text()) return std::nullopt;
  const std::string_view text = reply.text();
  std::int64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

template <class Use>
auto counters::told(Use&& use) const {
  try {
    return use();
  } catch (const redis::late& why) {
    if (why.sent()) throw failure(failure::late, "redis did not answer in time");
    throw failure(failure::unreachable, connections_.trouble());
  } catch (const redis::connection_lost& why) {
    throw failure(why.sent() ? failure::broken : failure::unreachable, why.what());
  } catch (const redis::server_error& why) {
    throw refusal(why);
  } catch (const redis::reply_error& why) {  // another kind of reply, or none
    throw failure(failure::broken, why.what());
  }
}

std::int64_t counters::add(std::string_view name, std::int64_t by) {
  return told([&] { return connections_.command("INCRBY", key_of(name), by).integer(); });
}

std::optional<std::int64_t> counters::get(std::string_view name) {
  const redis::reply reply = told([&] { return connections_.command("GET", key_of(name)); });
  if (reply.is_null()) return std::nullopt;
  const auto value = number_in(reply);
  if (!value) throw failure(failure::unfit, "what redis has is no whole number: " + std::string(reply.text()));
  return value;
}

bool counters::remove(std::string_view name) {
  return told([&] { return connections_.command("DEL", key_of(name)).integer() == 1; });
}

std::map<std::string, std::int64_t> counters::all() {
  std::map<std::string, std::int64_t> found;  // SCAN may return a key twice
  for (std::string cursor; cursor != "0";) cursor = told([&] { return add_page(cursor, found); });
  return found;
}

// Adds a page of the counters to `found`, and returns where the next one begins: "0" after the last.
std::string counters::add_page(const std::string& cursor, std::map<std::string, std::int64_t>& found) {
  const redis::reply page =
      connections_.command("SCAN", cursor.empty() ? "0" : cursor, "MATCH", key_of("*"), "COUNT", 1000);
  std::vector<redis::argument> words{"MGET"};
  for (const redis::reply_view key : page[1]) words.emplace_back(key.text());
  if (words.size() > 1) {
    const redis::reply values = connections_.command(words);
    for (std::size_t i = 1; i < words.size(); ++i)
      if (const auto value = number_in(values[i - 1])) found.emplace(words[i].text().substr(prefix.size()), *value);
  }
  return std::string(page[0].text());
}

void counters::ping() {
  told([&] { return connections_.command("PING"); });
}

}  // namespace redis_counter
