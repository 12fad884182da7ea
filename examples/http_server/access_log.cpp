#include "access_log.hpp"

#include "../request_context.hpp"

#include <ulexite/sync/blocking.hpp>

#include <spdlog/fmt/chrono.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

namespace http_server {
namespace {

constexpr const char* patterns[] = {"time=%Y-%m-%dT%H:%M:%S.%eZ %v", R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ",%v)"};

// Bytes that are not UTF-8 are replaced.
std::string json_of(const nlohmann::ordered_json& fields) {
  return fields.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

access_log::access_log(const std::string& where, log_format format) : format_(format) {
  const char* const pattern = patterns[format == log_format::json];
  if (where == "-")
    log_.emplace("access", STDOUT_FILENO, pattern, spdlog::pattern_time_type::utc);
  else if (!where.empty())
    log_.emplace("access", where, pattern, spdlog::pattern_time_type::utc);
}

void access_log::write(const access_record& record) {
  if (!is_on()) return;
  const examples::request_context none;  // the header was not read
  const auto now = examples::current_request();
  const examples::request_context& ids = now ? *now : none;
  if (format_ == log_format::text)
    return log_->logger()->info(
        "peer={} method={:?} target={:?} status={} bytes={} us={} agent={:?} request={} trace={}", record.peer,
        record.method, record.target, record.status, record.bytes, record.duration.count(), record.user_agent,
        ids.request_id, ids.trace.trace_id);
  const std::string line = json_of({{"peer", record.peer},
                                    {"method", record.method},
                                    {"target", record.target},
                                    {"status", record.status},
                                    {"bytes", record.bytes},
                                    {"us", record.duration.count()},
                                    {"agent", record.user_agent},
                                    {"request", ids.request_id},
                                    {"trace", ids.trace.trace_id},
                                    {"span", ids.trace.span_id}});
  log_->logger()->info("{}", std::string_view(line).substr(1));  // the pattern has the first brace
}

void say_event(log_format format, const std::string& event, const std::string& why) {
  const std::string time = fmt::format("{:%FT%TZ}", fmt::gmtime(std::time(nullptr)));
  std::string line = json_of({{"time", time}, {"event", event}, {"why", why}});
  if (format == log_format::text) line = fmt::format("time={} event={} why={:?}", time, event, why);
  line += '\n';
  ulexite::blocking([&] {
    try {
      examples::bounded_output err(STDERR_FILENO);
      err.end_at(examples::bounded_output::clock::now() + std::chrono::seconds(1));
      err.write(line);
    } catch (const std::system_error&) {  // it is closed
    }
  });
}

}  // namespace http_server
