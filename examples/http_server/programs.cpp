#include "programs.hpp"

#include "answer.hpp"

#include <openssl/evp.h>

#include <array>
#include <memory>
#include <stdexcept>
#include <string>

namespace http_server {
namespace {

class sha256 {
 public:
  sha256() { check(EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr)); }

  void add(std::string_view bytes) { check(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size())); }

  // In hexadecimal digits. Once.
  std::string digest() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
    unsigned size = 0;
    check(EVP_DigestFinal_ex(context_.get(), digest.data(), &size));
    std::string digits;
    for (unsigned i = 0; i < size; ++i) {
      digits += "0123456789abcdef"[digest[i] >> 4];
      digits += "0123456789abcdef"[digest[i] & 15];
    }
    return digits;
  }

 private:
  static void check(int done) {
    if (done != 1) throw std::runtime_error("OpenSSL refused to compute a SHA-256");
  }

  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_{EVP_MD_CTX_new(), &EVP_MD_CTX_free};
};

}  // namespace

void hello(http::exchange& now) { now.send(with_text(http::status::ok, "hello\n")); }

void upload(http::exchange& now) {
  sha256 hash;
  std::uint64_t bytes = 0;
  for (std::string_view part = now.read_some(); !part.empty(); part = now.read_some()) {
    hash.add(part);
    bytes += part.size();
  }
  now.send(with_text(http::status::ok,
                     R"({"bytes":)" + std::to_string(bytes) + R"(,"sha256":")" + hash.digest() + "\"}\n",
                     "application/json"));
}

// Reading waits while the client does not take the echo, so no data accumulates here.
void echo(http::exchange& now) {
  std::string_view part = now.read_some();  // before the answer begins, so that a bad one can be refused
  http::response header = begin_header(http::status::ok);
  header.set(http::field::content_type, "application/octet-stream");
  now.begin(header);
  for (; !part.empty(); part = now.read_some()) now.write(part);
}

}  // namespace http_server
