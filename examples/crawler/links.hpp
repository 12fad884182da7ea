#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

// The targets of the <a href=...> of a page, as they are written but for &amp;. Comments are left out.
std::vector<std::string> links_of(std::string_view html);

// `reference` as it is meant on the page `base`, normalised and without its fragment. nullopt if it is no reference.
std::optional<std::string> resolve_link(const std::string& base, const std::string& reference);
