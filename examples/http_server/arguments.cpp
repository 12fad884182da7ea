#include "arguments.hpp"

#include "../inspect/inspect.hpp"
#include "../program.hpp"

#include <map>

namespace http_server {
namespace {

void add_time(CLI::App& app, const std::string& name, std::chrono::nanoseconds& time, const std::string& what,
              double least = 0.001) {
  const auto take = [&time](double seconds) {
    time = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(seconds));
  };
  app.add_option_function<double>(name, take, "Seconds " + what)
      ->check(examples::finite)
      ->check(CLI::Range(least, 86400.0))
      ->default_str(CLI::detail::to_string(std::chrono::duration<double>(time).count()));
}

template <class Size>
void add_size(CLI::App& app, const std::string& name, Size& size, const std::string& what) {
  app.add_option(name, size, "Bytes " + what + ", also as 64kb or 1gb")
      ->transform(CLI::AsSizeValue(false))
      ->check(examples::not_negative)
      ->capture_default_str();
}

void describe_limits(CLI::App& app, limits& bounds) {
  add_time(app, "--handshake-time", bounds.handshake_time, "in which TLS must be agreed on");
  add_time(app, "--idle-time", bounds.idle_time, "that a client may take to begin its next request");
  add_time(app, "--header-time", bounds.header_time, "for the whole header of a request to arrive");
  add_time(app, "--body-time", bounds.body_time, "for its whole body");
  add_time(app, "--write-time", bounds.write_time,
           "that a client may take to read each 64 KiB of an answer, or 256 KiB of a large file");
  add_size(app, "--least-rate", bounds.least_rate,
           "of an answer that a client must take a second, on the whole; 0: no limit");
  add_size(app, "--header-size", bounds.header_size, "of a request's header");
  add_size(app, "--body-size", bounds.body_size, "of a request's body");
}

}  // namespace

void describe(CLI::App& app, arguments& given) {
  app.add_option("DIR", given.directory, "Directory to serve")->required();
  app.add_option("--bind", given.bind, "Numeric address to listen on")->capture_default_str();
  app.add_option("--port", given.port, "Port to listen on; 0 takes a free one")->capture_default_str();
  examples::describe_inspect(app, given.inspect);
  CLI::Option* const certificate =
      app.add_option("--cert", given.certificate, "PEM file with the certificate chain: serve HTTPS");
  CLI::Option* const key = app.add_option("--key", given.key, "PEM file with its private key");
  certificate->needs(key);
  key->needs(certificate);
  app.add_option("--access-log", given.access_log, "File to append a line to for each request; -: standard output");
  app.add_option("--log-format", given.format, "text, or json: an object a line")
      ->transform(CLI::CheckedTransformer(
          std::map<std::string, log_format>{{"text", log_format::text}, {"json", log_format::json}}))
      ->default_str("text");
  app.add_option("--max-connections", given.max_connections,
                 "Most connections at a time, others wait; 0: what the limit of descriptors allows")
      ->check(examples::not_negative)
      ->capture_default_str();
  describe_limits(app, given.bounds);
  add_time(app, "--grace", given.grace_time, "that a stop waits for the requests under way");
  add_time(app, "--drain-delay", given.drain_delay,
           "between a stop and the close of the listener, in which /readyz answers 503 and all else goes on", 0);
  app.set_config("--config", "", "TOML file with options; SIGHUP reads its limits and names of certificates again");
  app.allow_config_extras(false);
}

arguments read_again(int argc, const char* const* argv) {
  arguments again;
  CLI::App app;
  describe(app, again);
  app.add_option("--threads");  // of program.hpp
  app.parse(argc, argv);
  return again;
}

}  // namespace http_server
