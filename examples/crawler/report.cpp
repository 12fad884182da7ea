#include "report.hpp"

#include <boost/json.hpp>

#include <algorithm>

namespace json = boost::json;

namespace {

std::size_t visited_pages(const crawl& found) {
  return static_cast<std::size_t>(
      std::ranges::count_if(found.pages(), [](const auto& each) { return each.second.visited(); }));
}

// "200", "timeout", "not visited".
std::string outcome(const page& page) {
  if (!page.visited()) return "not visited";
  return page.status != 0 ? std::to_string(page.status) : page.error;
}

}  // namespace

std::size_t broken_pages(const crawl& found) {
  return static_cast<std::size_t>(
      std::ranges::count_if(found.pages(), [](const auto& each) { return each.second.broken(); }));
}

std::string report_as_text(const crawl& found, std::string_view ending) {
  std::string text;
  for (const auto& [url, page] : found.pages()) {
    text += outcome(page) + "  " + url;
    if (page.attempts > 1) text += "  (" + std::to_string(page.attempts) + " attempts)";
    text += '\n';
  }
  for (const auto& [url, page] : found.pages())
    if (page.broken())
      for (const std::string& from : page.linked_from)
        text += "broken link: " + from + " -> " + url + " (" + outcome(page) + ")\n";
  text += std::string(ending) + ": " + std::to_string(visited_pages(found)) + " of " +
          std::to_string(found.pages().size()) + " pages visited, " + std::to_string(broken_pages(found)) +
          " broken, " + std::to_string(found.elsewhere().size()) + " links to elsewhere";
  if (found.links_not_kept() > 0) text += ", and " + std::to_string(found.links_not_kept()) + " links were not kept";
  text += '\n';
  return text;
}

std::string report_as_json(const crawl& found, std::string_view ending) {
  json::array pages;
  for (const auto& [url, page] : found.pages()) {
    json::object each{{"url", url}, {"status", page.status}, {"attempts", page.attempts}, {"broken", page.broken()}};
    if (!page.error.empty()) each["error"] = page.error;
    each["linked_from"] = json::value_from(page.linked_from);
    pages.push_back(std::move(each));
  }
  const json::object all{{"ending", json::string_view(ending.data(), ending.size())},
                         {"pages", std::move(pages)},
                         {"elsewhere", json::value_from(found.elsewhere())},
                         {"links_not_kept", found.links_not_kept()},
                         {"visited", visited_pages(found)},
                         {"broken", broken_pages(found)}};
  return json::serialize(all) + '\n';
}
