// Looks for broken links: visits the pages of one site, from a start page on, several at a time.
//
//   crawler http://127.0.0.1:8080/
//   crawler --concurrency 20 --timeout 2000 --deadline 30000 --json http://127.0.0.1:8080/
//
// It follows links to the same host and port only. SIGINT, SIGTERM and the deadline end it; then it reports the results
// so far. Status 0: all pages were visited, and none is broken.

#include "../program.hpp"
#include "crawl.hpp"
#include "report.hpp"

#include <ulexite.hpp>

#include <CLI/CLI.hpp>

#include <cstdio>
#include <exception>
#include <string>

namespace {

namespace ux = ulexite;

struct arguments {
  crawl_options crawl;
  bool json = false;
};

void describe(CLI::App& app, arguments& given) {
  const auto milliseconds = [&](const char* name, std::chrono::milliseconds& value, const char* text) {
    app.add_option_function<unsigned>(
           name, [&](unsigned count) { value = std::chrono::milliseconds(count); },
           text + (" [" + std::to_string(value.count()) + "]"))
        ->check(CLI::Range(1, 86'400'000));
  };
  app.add_option("URL", given.crawl.start, "Where to start: http://HOST[:PORT]/PATH")->required();
  app.add_option("--concurrency", given.crawl.concurrency, "Requests at the same time")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--attempts", given.crawl.attempts, "How often a page is tried")
      ->check(CLI::Range(1, 20))
      ->capture_default_str();
  milliseconds("--timeout", given.crawl.request_timeout, "Milliseconds for one request");
  milliseconds("--back-off", given.crawl.back_off, "Milliseconds before the second attempt; doubles with each");
  milliseconds("--deadline", given.crawl.deadline, "Milliseconds for all");
  app.add_option("--max-pages", given.crawl.max_pages, "Pages at most; status 1 if there are more")
      ->check(CLI::Range(1, 10'000'000))
      ->capture_default_str();
  app.add_option("--max-links", given.crawl.max_links, "Links that are kept at most; the others are only counted")
      ->check(CLI::Range(0, 100'000'000))
      ->capture_default_str();
  app.add_flag("--json", given.json, "Report as JSON");
}

int run(const arguments& given, examples::stop_signals& signals) {
  crawl site(given.crawl);
  std::string ending = "complete";
  int status = 0;
  try {
    const auto first = ux::when_any([&] { site.run(); }, [&] { return signals.wait(); });
    if (first.index == 1) {
      ending = examples::name_of(std::get<1>(first.value));
      status = 128 + std::get<1>(first.value);
    } else if (site.met_limit()) {
      ending = "page limit";
      status = 1;
    }
  } catch (const ux::deadline_exceeded&) {
    ending = "deadline";
    status = 1;
  }
  if (status == 0 && broken_pages(site) > 0) status = 1;
  ux::os::standard_output().write(given.json ? report_as_json(site, ending) : report_as_text(site, ending));
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  arguments given;
  return examples::run_program(
      argc, argv, "crawler", "Visits the pages of one site by their links, and reports the broken ones.",
      [&](CLI::App& app) { describe(app, given); },
      [&](examples::stop_signals& signals, const ux::runtime_options& options) {
        return ux::runtime(options).run(run, std::cref(given), std::ref(signals));
      });
}
