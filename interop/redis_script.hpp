#pragma once

// Scripts of redis. Included by redis.hpp.

#include <ulexite/interop/redis_pool.hpp>

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ulexite::redis {

namespace detail {

// SHA-1 (FIPS 180-4) in hexadecimal digits, by which redis names scripts.
inline std::string sha1_of(std::string_view text) {
  std::array<std::uint32_t, 5> h{0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
  std::string padded(text);
  padded += '\x80';
  padded.resize((padded.size() + 8 + 63) / 64 * 64 - 8);
  for (int shift = 56; shift >= 0; shift -= 8)
    padded += static_cast<char>(static_cast<std::uint64_t>(text.size()) * 8 >> shift & 0xff);
  for (std::size_t block = 0; block < padded.size(); block += 64) {
    std::array<std::uint32_t, 80> w{};
    for (std::size_t i = 0; i < 64; ++i) w[i / 4] = w[i / 4] << 8 | static_cast<unsigned char>(padded[block + i]);
    for (std::size_t i = 16; i < 80; ++i) w[i] = std::rotl(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    auto [a, b, c, d, e] = h;
    for (std::size_t i = 0; i < 80; ++i) {
      const std::uint32_t f = i < 20   ? ((b & c) | (~b & d)) + 0x5a827999
                              : i < 40 ? (b ^ c ^ d) + 0x6ed9eba1
                              : i < 60 ? ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc
                                       : (b ^ c ^ d) + 0xca62c1d6;
      const std::uint32_t next = std::rotl(a, 5) + f + e + w[i];
      e = std::exchange(d, std::exchange(c, std::rotl(std::exchange(b, std::exchange(a, next)), 30)));
    }
    h = {h[0] + a, h[1] + b, h[2] + c, h[3] + d, h[4] + e};
  }
  std::string digits;
  for (const std::uint32_t each : h)
    for (int shift = 28; shift >= 0; shift -= 4) digits += "0123456789abcdef"[each >> shift & 0xf];
  return digits;
}

}  // namespace detail

// A script in Lua. Any number of fibers may use it.
class script {
 public:
  // Takes the text. Sends nothing.
  explicit script(std::string text) : text_(std::move(text)), sha_(detail::sha1_of(text_)) {}

  // Runs the script with these keys (KEYS in Lua) and arguments (ARGV), by EVALSHA; by EVAL if the server does not have
  // it, as after a restart. `to` is a pool or a connection: waits and throws as its command() does.
  template <class To, class... Words>
    requires(std::constructible_from<argument, const Words&> && ...)
  reply run(To& to, std::initializer_list<argument> keys, const Words&... arguments) const {
    std::vector<argument> words{"EVALSHA", sha_, keys.size()};
    words.insert(words.end(), keys);
    (words.emplace_back(arguments), ...);
    try {
      return to.command(words);
    } catch (const server_error& why) {
      if (why.code() != "NOSCRIPT") throw;
    }
    words[0] = "EVAL";
    words[1] = text_;
    return to.command(words);
  }

  // The name that redis gives it: SHA-1, in hexadecimal digits.
  [[nodiscard]] const std::string& sha() const noexcept { return sha_; }

 private:
  const std::string text_, sha_;
};

}  // namespace ulexite::redis
