#pragma once

// A certificate for the tests of TLS.

#include "net_fixture.hpp"

#include <ulexite/interop/tls.hpp>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>

namespace ulexite::test {

// A key, and a certificate for "localhost" that it has signed itself, as files. `names` are its alternative names, if
// any.
class identity {
 public:
  explicit identity(const char* names = "DNS:localhost,IP:127.0.0.1")
      : certificate(scratch_path(("certificate" + std::to_string(++made_so_far)).c_str())), key(certificate + ".key") {
    char curve[] = "P-256";
    EVP_PKEY* const pair = EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", curve);
    X509* const made = X509_new();
    X509_set_version(made, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(made), 1);
    X509_gmtime_adj(X509_getm_notBefore(made), -3600);
    X509_gmtime_adj(X509_getm_notAfter(made), 3600);
    X509_set_pubkey(made, pair);
    X509_NAME* const name = X509_get_subject_name(made);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("localhost"), -1, -1,
                               0);
    X509_set_issuer_name(made, name);
    if (names) {
      X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, names);
      X509_add_ext(made, extension, -1);
      X509_EXTENSION_free(extension);
    }
    X509_sign(made, pair, EVP_sha256());
    std::FILE* file = std::fopen(certificate.c_str(), "w");
    PEM_write_X509(file, made);
    std::fclose(file);
    file = std::fopen(key.c_str(), "w");
    PEM_write_PrivateKey(file, pair, nullptr, nullptr, 0, nullptr, nullptr);
    std::fclose(file);
    X509_free(made);
    EVP_PKEY_free(pair);
  }
  ~identity() {
    std::filesystem::remove(certificate);
    std::filesystem::remove(key);
  }
  identity(const identity&) = delete;
  identity& operator=(const identity&) = delete;

  const std::string certificate, key;

 private:
  static inline int made_so_far = 0;
};

class Tls : public NetTest {
 protected:
  static void SetUpTestSuite() { mine = new identity; }
  static void TearDownTestSuite() { delete std::exchange(mine, nullptr); }

  static tls_context serving() { return tls_context::server(mine->certificate, mine->key); }
  static tls_context trusting() {
    tls_context made = tls_context::client();
    made.trust(mine->certificate);
    return made;
  }

  static inline identity* mine = nullptr;
};

using stream = tls_stream<net::tcp_stream>;

inline std::string read_to_end(stream& from) {
  std::string all;
  char part[5000];
  while (const std::size_t got = from.read_some(part, sizeof part)) all.append(part, got);
  return all;
}

}  // namespace ulexite::test
