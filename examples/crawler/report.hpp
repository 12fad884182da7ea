#pragma once

#include "crawl.hpp"

#include <string>
#include <string_view>

// What a crawl has found, one line for each page, then each broken link and the totals. `ending`: "complete", or why
// not.
std::string report_as_text(const crawl& found, std::string_view ending);
// The same as one JSON object.
std::string report_as_json(const crawl& found, std::string_view ending);

// Pages that were visited and could not be got.
std::size_t broken_pages(const crawl& found);
