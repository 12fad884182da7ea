#include "access_log.hpp"

#include <unistd.h>

namespace http_server {

access_log::access_log(const std::string& where) {
  constexpr const char* pattern = "time=%Y-%m-%dT%H:%M:%S.%eZ %v";
  if (where == "-")
    log_.emplace("access", STDOUT_FILENO, pattern, spdlog::pattern_time_type::utc);
  else if (!where.empty())
    log_.emplace("access", where, pattern, spdlog::pattern_time_type::utc);
}

void access_log::write(const access_record& record) {
  if (!is_on()) return;
  log_->logger()->info("peer={} method={:?} target={:?} status={} bytes={} us={} agent={:?}", record.peer,
                       record.method, record.target, record.status, record.bytes, record.duration.count(),
                       record.user_agent);
}

}  // namespace http_server
