// Ulexite in less than a minute: four programs that suit fibers, with checked results. Read it from the top: options,
// then the parts one after the other, then the summary.

#include "part.hpp"
#include "summary.hpp"

#include <unistd.h>
#include <CLI/CLI.hpp>

#include <exception>
#include <filesystem>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

namespace {

struct options {
  std::size_t threads = 0;
  std::size_t fibers = 100'000;
  std::size_t clients = 1'000;
  std::vector<std::filesystem::path> directories;
};

void describe(CLI::App& app, options& chosen) {
  app.add_option("--threads", chosen.threads, "worker threads [one for each processor]")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1024}));
  app.add_option("--fibers", chosen.fibers, "fibers in the first part")
      ->check(CLI::Range(std::size_t{1}, std::size_t{10'000'000}))
      ->capture_default_str();
  app.add_option("--clients", chosen.clients, "clients of each server")
      ->check(CLI::Range(std::size_t{1}, std::size_t{20'000}))
      ->capture_default_str();
  app.add_option("DIR", chosen.directories, "whose files to count the words of [some that every system has]")
      ->check(CLI::ExistingDirectory);
}

// The licenses and the C headers, if they exist; otherwise the current directory.
std::vector<std::filesystem::path> usual_directories() {
  std::vector<std::filesystem::path> found;
  for (const char* const path : {"/usr/share/common-licenses", "/usr/include"})
    if (std::error_code error; std::filesystem::is_directory(path, error)) found.emplace_back(path);
  if (found.empty()) found.emplace_back(".");
  return found;
}

void check_readable(const std::vector<std::filesystem::path>& directories) {
  for (const auto& directory : directories)
    if (access(directory.c_str(), R_OK | X_OK) != 0)
      throw std::runtime_error("no permission to read the directory " + directory.string());
}

// Runs every part, also after a part has failed. True if none did.
bool run_parts(const options& chosen, ulexite::runtime& runtime, tour::summary& summary) {
  struct part {
    const char* name;
    std::function<tour::result()> run;
  };
  const part parts[] = {
      {"channel", [&] { return tour::meet_on_a_channel(runtime, chosen.fibers); }},
      {"word count", [&] { return tour::count_words(runtime, chosen.directories); }},
      {"TCP echo", [&] { return tour::echo_over_tcp(runtime, chosen.clients); }},
      {"HTTP", [&] { return tour::serve_http(runtime, chosen.clients); }},
  };
  bool good = true;
  for (const part& part : parts) {
    try {
      summary.add(part.name, part.run());
    } catch (const std::exception& failure) {
      std::cerr << "tour: " << part.name << ": " << failure.what() << '\n';
      summary.add_failure(part.name, failure.what());
      good = false;
    }
  }
  return good;
}

bool run(const options& chosen) {
  ulexite::runtime runtime({.threads = chosen.threads});
  tour::summary summary;
  bool good = run_parts(chosen, runtime, summary);
  good &= summary.add_metrics(runtime.metrics());
  summary.print(std::cout);
  if (!std::cout.flush()) throw std::runtime_error("the summary could not be written");
  return good;
}

}  // namespace

int main(int argc, char** argv) {
  options chosen;
  CLI::App app("Shows what Ulexite is: runs four small programs on fibers, checks and times them.", "tour");
  describe(app, chosen);
  try {
    app.parse(argc, argv);
    if (chosen.directories.empty()) chosen.directories = usual_directories();
    check_readable(chosen.directories);
    return run(chosen) ? 0 : 1;
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    std::cerr << "tour: " << error.what() << '\n';
    return 2;
  } catch (const std::exception& error) {
    std::cerr << "tour: " << error.what() << '\n';
    return 1;
  }
}
