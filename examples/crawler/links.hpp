#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

// The targets of the <a href=...> of a page, as they are written, except &amp;. Skips comments.
std::vector<std::string> links_of(std::string_view html);

// Resolves `reference` on the page `base`, normalised and without its fragment. nullopt if it is not a reference.
std::optional<std::string> resolve_link(const std::string& base, const std::string& reference);
