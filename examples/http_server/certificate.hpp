#pragma once

#include <ulexite/interop/tls_context.hpp>

#include <string>

namespace http_server {

// TLS 1.2 or later, with the certificate chain and the private key of two PEM files. Throws std::runtime_error naming
// the file and what is wrong with it.
[[nodiscard]] ulexite::tls_context tls_of(const std::string& certificate, const std::string& key);

}  // namespace http_server
