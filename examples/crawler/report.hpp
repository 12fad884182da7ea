#pragma once

#include "crawl.hpp"

#include <string>
#include <string_view>

// The results of a crawl: one line for each page, then each broken link and the totals. `ending` is "complete", or the
// reason for an early end.
std::string report_as_text(const crawl& found, std::string_view ending);
// The results as one JSON object.
std::string report_as_json(const crawl& found, std::string_view ending);

// The number of pages that were visited without success.
std::size_t broken_pages(const crawl& found);
