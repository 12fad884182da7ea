#include "sha256.hpp"

#include <ulexite/os/standard_streams.hpp>
#include <ulexite/runtime/this_fiber.hpp>

#include <openssl/evp.h>

#include <array>
#include <memory>
#include <stdexcept>
#include <vector>

namespace {

void check(int done) {
  if (done != 1) throw std::runtime_error("OpenSSL refused to compute a SHA-256");
}

}  // namespace

std::string sha256_of(const std::string& path) {
  ulexite::os::input_stream file(path);
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  check(EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr));
  std::vector<char> block(64 * 1024);  // not on the fiber's stack, which is small
  while (const std::size_t got = file.read_some(block.data(), block.size())) {
    check(EVP_DigestUpdate(context.get(), block.data(), got));
    ulexite::this_fiber::yield();  // a large file must not keep this worker for itself
  }

  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned size = 0;
  check(EVP_DigestFinal_ex(context.get(), digest.data(), &size));
  std::string digits;
  for (unsigned i = 0; i < size; ++i) {
    digits += "0123456789abcdef"[digest[i] >> 4];
    digits += "0123456789abcdef"[digest[i] & 15];
  }
  return digits;
}
