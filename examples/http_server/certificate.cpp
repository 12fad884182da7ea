#include "certificate.hpp"

#include <stdexcept>
#include <string_view>
#include <system_error>

namespace http_server {

ulexite::tls_context tls_of(const std::string& certificate, const std::string& key) try {
  return ulexite::tls_context::server(certificate, key);
} catch (const std::system_error& error) {
  const bool of_the_key = std::string_view(error.what()).find("the key in") != std::string_view::npos;
  throw std::runtime_error(
      (of_the_key ? "cannot use the private key \"" + key : "cannot use the certificate \"" + certificate) +
      "\": " + error.code().message());
}

}  // namespace http_server
