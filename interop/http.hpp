#pragma once

// HTTP/1.1 in fibers: a server and a client. TLS for both is in <ulexite/interop/http_tls.hpp>.

#include <ulexite/interop/http_client.hpp>  // IWYU pragma: export
#include <ulexite/interop/http_server.hpp>  // IWYU pragma: export
