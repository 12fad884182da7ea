#pragma once

#include <ulexite.hpp>
#include <ulexite/interop/http_client.hpp>

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

struct crawl_options {
  std::string start;  // a URL
  std::size_t concurrency = 8;
  unsigned attempts = 3;
  std::chrono::milliseconds request_timeout{5'000};
  std::chrono::milliseconds back_off{100};  // before the second attempt; doubles with each
  std::chrono::milliseconds deadline{60'000};
  std::size_t max_pages = 10'000;
  std::size_t max_links = 100'000;  // that are kept: to other sites, and between pages
};

// The result of a URL.
struct page {
  unsigned status = 0;  // 0: no answer, see error
  unsigned attempts = 0;
  std::string error{};
  std::vector<std::string> links{};  // resolved; empty once they were followed
  std::set<std::string> linked_from{};

  [[nodiscard]] bool visited() const { return attempts > 0; }
  [[nodiscard]] bool broken() const { return visited() && (status == 0 || status >= 400); }
};

// Visits the pages of one site that can be reached by links from a start. The results grow while run() works, and stay
// when run() is cancelled.
class crawl {
 public:
  // Throws std::invalid_argument if the start is not an http URL.
  explicit crawl(const crawl_options& given);

  // Crawls until there is nothing left to visit. Throws std::system_error if the site cannot be reached at all, and
  // deadline_exceeded.
  void run();

  [[nodiscard]] const std::map<std::string, page>& pages() const { return pages_; }
  [[nodiscard]] const std::set<std::string>& elsewhere() const { return elsewhere_; }
  // The links beyond max_links. A link that occurs again counts again, because it was not kept.
  [[nodiscard]] std::size_t links_not_kept() const { return links_not_kept_; }
  // Whether a link to a page of the site was left out because there were max_pages already.
  [[nodiscard]] bool met_limit() const { return met_limit_; }

 private:
  struct visit {
    std::string url{};
    page result{};
  };

  void work();
  [[nodiscard]] page visit_page(const std::string& url);
  void try_page(const std::string& url, page& result);
  void coordinate(ulexite::task_group& group);
  void record(visit done);
  void discover(const std::string& url, const std::string& from);
  void keep(std::set<std::string>& where, const std::string& link);

  const crawl_options& given_;
  std::string site_;  // "http://host:port", the beginning of its pages' URLs
  std::string start_, host_;
  std::uint16_t port_;
  ulexite::http::client client_{{.user_agent = "ulexite-crawler"}};
  ulexite::channel<std::string> to_visit_;
  ulexite::channel<visit> visited_;

  // Of the coordinator.
  std::deque<std::string> frontier_;
  std::size_t under_way_ = 0;
  std::map<std::string, page> pages_;  // by URL
  std::set<std::string> elsewhere_;    // URLs of other sites
  std::size_t links_ = 0, links_not_kept_ = 0;
  bool met_limit_ = false;
};
