#include "access_log.hpp"

#include <spdlog/async.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

namespace http_server {

access_log::access_log(const std::string& where) {
  if (where.empty()) return;
  spdlog::sink_ptr sink;
  if (where == "-")
    sink = std::make_shared<spdlog::sinks::stdout_sink_st>();
  else
    sink = std::make_shared<spdlog::sinks::basic_file_sink_st>(where);
  writer_ = std::make_shared<spdlog::details::thread_pool>(8192, 1);  // lines, threads
  logger_ = std::make_shared<spdlog::async_logger>("access", std::move(sink), writer_,
                                                   spdlog::async_overflow_policy::overrun_oldest);
  logger_->set_pattern("time=%Y-%m-%dT%H:%M:%S.%eZ %v", spdlog::pattern_time_type::utc);
  logger_->flush_on(spdlog::level::info);  // so that `tail -f` shows them; it is the writer's time
}

void access_log::write(const access_record& record) {
  if (!is_on()) return;
  logger_->info("peer={} method={:?} target={:?} status={} bytes={} us={} agent={:?}", record.peer, record.method,
                record.target, record.status, record.bytes, record.duration.count(), record.user_agent);
}

std::size_t access_log::finish() {
  if (!is_on()) return 0;
  const std::size_t lost = writer_->overrun_counter();
  logger_.reset();
  writer_.reset();
  return lost;
}

}  // namespace http_server
