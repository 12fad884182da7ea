// The MD5 sums of all regular files below a directory, sorted by path, as md5sum prints them: after the pipeline with
// golang.org/x/sync/errgroup and SetLimit. One fiber walks the tree, a limited number hash files, one collects; the
// first error ends all.
//
//   checksums --limit 20 DIR

#include "../program.hpp"

#include <ulexite.hpp>

#include <openssl/evp.h>
#include <CLI/CLI.hpp>

#include <array>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace ux = ulexite;

namespace {

struct arguments {
  std::string directory;
  std::size_t limit = 20;
};

std::string md5_of(const std::filesystem::path& path) {
  ux::os::input_stream file(path);
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  if (EVP_DigestInit_ex(context.get(), EVP_md5(), nullptr) != 1) throw std::runtime_error("OpenSSL has no MD5");
  std::vector<char> block(64 * 1024);
  while (const std::size_t got = file.read_some(block.data(), block.size())) {
    EVP_DigestUpdate(context.get(), block.data(), got);
    ux::this_fiber::yield_if_requested();
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned size = 0;
  EVP_DigestFinal_ex(context.get(), digest.data(), &size);
  std::string digits;
  for (unsigned i = 0; i < size; ++i) {
    digits += "0123456789abcdef"[digest[i] >> 4];
    digits += "0123456789abcdef"[digest[i] & 15];
  }
  return digits;
}

using sum = std::pair<std::string, std::string>;  // path, digest

std::map<std::string, std::string> sum_all(const arguments& given) {
  auto [paths, found] = ux::make_channel<std::filesystem::path>();
  auto [digests, computed] = ux::make_channel<sum>();
  std::map<std::string, std::string> all;
  ux::scope([&](ux::task_group& stages) {
    stages.spawn([&, to = std::move(paths)] {  // the channel ends with this fiber
      ux::os::walk(given.directory, [&](const ux::os::walk_entry& entry) {
        if (entry.error) throw std::system_error(entry.error, entry.path.string());
        if (entry.type == std::filesystem::file_type::regular) to.send(entry.path);
      });
    });
    stages.spawn([&, to = std::move(digests)] {
      ux::task_group hashing(ux::on_error::cancel_siblings, given.limit);
      for (const std::filesystem::path& path : found)
        hashing.spawn([&to, path] { to.send({path.string(), md5_of(path)}); });  // waits for room
      hashing.wait();
    });
    for (sum& each : computed) all.insert(std::move(each));
  });
  return all;
}

int run(const arguments& given, examples::stop_signals& signals) {
  const auto first = ux::when_any([&] { return sum_all(given); }, [&] { return signals.wait(); });
  if (first.index == 1) return 128 + std::get<1>(first.value);
  std::string text;
  for (const auto& [path, digest] : std::get<0>(first.value)) text += digest + "  " + path + '\n';
  ux::os::standard_output().write(text);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  arguments given;
  const auto describe = [&](CLI::App& app) {
    app.add_option("DIR", given.directory, "The directory")->required();
    app.add_option("--limit", given.limit, "Files that are hashed at the same time")
        ->check(CLI::Range(1, 1'000'000))
        ->capture_default_str();
  };
  return examples::run_program(argc, argv, "checksums", "Prints the MD5 sums of all regular files below a directory.",
                               describe, [&](examples::stop_signals& signals, const ux::runtime_options& options) {
                                 return ux::runtime(options).run([&] { return run(given, signals); });
                               });
}
