#include "crawl.hpp"

#include "fetch.hpp"
#include "links.hpp"

#include <boost/url/parse.hpp>

#include <algorithm>
#include <exception>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <utility>

namespace ux = ulexite;

crawl::crawl(const crawl_options& given) : given_(given) {
  const auto start = resolve_link(given.start, "");
  if (!start) throw std::invalid_argument("\"" + given.start + "\" is no URL");
  const auto parts = boost::urls::parse_uri(*start).value();
  if (parts.scheme() != "http" || parts.encoded_host().empty() || parts.has_userinfo())
    throw std::invalid_argument("\"" + given.start + "\" is not of the form http://HOST[:PORT]/PATH");
  start_ = *start;
  host_ = std::string(parts.encoded_host());
  if (host_.starts_with('[')) host_ = host_.substr(1, host_.size() - 2);  // an IPv6 address
  port_ = parts.has_port() ? parts.port_number() : std::uint16_t{80};
  site_ = "http://" + std::string(parts.encoded_host_and_port());
}

void crawl::run() {
  const ux::deadline_scope all(given_.deadline);
  discover(start_, "");
  ux::net::tcp_stream::connect(ux::net::address(host_, port_)).close();  // throws if the site cannot be reached at all
  ux::scope([&](ux::task_group& group) {
    for (std::size_t i = 0; i < given_.concurrency; ++i) group.spawn([&] { work(); });
    coordinate(group);
    to_visit_.close();
  });
}

void crawl::coordinate(ux::task_group& group) {
  std::string none;
  while (under_way_ > 0 || !frontier_.empty()) {
    std::string& next = frontier_.empty() ? none : frontier_.front();
    ux::select(
        // A worker has failed: no further results would arrive, and wait() throws its failure.
        ux::on_stop(group.get_stop_token(), [&] { group.wait(); }),
        ux::on_receive(visited_, [&](std::optional<visit> done) { record(std::move(*done)); }),
        ux::when(!frontier_.empty(), ux::on_send(to_visit_, next, [&] {
          frontier_.pop_front();
          ++under_way_;
        })));
  }
}

void crawl::record(visit done) {
  --under_way_;
  page& known = pages_[done.url];
  done.result.linked_from = std::move(known.linked_from);
  known = std::move(done.result);
  const auto links = std::exchange(known.links, {});  // not kept, because a page may have very many
  for (const std::string& link : links) {
    ux::this_fiber::check();  // a page of very many links takes long
    discover(link, done.url);
  }
}

void crawl::discover(const std::string& url, const std::string& from) {
  const bool inside =
      url.starts_with(site_) && (url.size() == site_.size() || url[site_.size()] == '/' || url[site_.size()] == '?');
  if (!inside) return keep(elsewhere_, url);
  const auto known = pages_.find(url);
  if (known == pages_.end() && pages_.size() >= given_.max_pages) {
    met_limit_ = true;
    return;
  }
  page& there = known == pages_.end() ? pages_[url] : known->second;
  if (known == pages_.end()) frontier_.push_back(url);
  if (!from.empty()) keep(there.linked_from, from);
}

void crawl::keep(std::set<std::string>& where, const std::string& link) {
  if (links_ < given_.max_links)
    links_ += where.insert(link).second ? 1 : 0;
  else if (!where.contains(link))
    ++links_not_kept_;
}

void crawl::work() {
  for (std::string& url : to_visit_) {
    page result = visit_page(url);
    visited_.send({std::move(url), std::move(result)});
  }
}

// Tries again after server errors, broken connections and time-outs. Each pause is twice as long as the last.
page crawl::visit_page(const std::string& url) {
  page result;
  for (auto pause = given_.back_off;; pause *= 2) {
    ++result.attempts;
    try_page(url, result);
    if ((result.status != 0 && result.status < 500) || result.attempts == given_.attempts) return result;
    ux::this_fiber::sleep_for(pause);
  }
}

void crawl::try_page(const std::string& url, page& result) {
  result.status = 0;
  result.error.clear();
  answer got;
  try {
    got = ux::timeout(given_.request_timeout, [&] { return fetch(client_, url); });
  } catch (const ux::operation_cancelled&) {
    ux::this_fiber::check();  // throws again if the whole crawl was cancelled, or met its deadline
    result.error = "timeout";
    return;
  } catch (const std::exception& failure) {
    result.error = failure.what();
    return;
  }
  result.status = got.status;
  std::vector<std::string> links;
  if (got.status / 100 == 3 && !got.location.empty()) links = {got.location};
  std::ranges::move(links_of(got.body), std::back_inserter(links));
  constexpr std::size_t longest = 8 << 10;  // of a link; a page may have very many
  for (const std::string& link : links) {
    ux::this_fiber::check();
    ux::this_fiber::yield_if_requested();
    if (link.size() > longest) continue;
    if (auto target = resolve_link(url, link); target && target->size() <= longest)
      result.links.push_back(std::move(*target));
  }
}
