#include "store.hpp"

#include <bit>

namespace kv_server {
namespace {

// Calls visit(index) for each bit of a set, from the lowest on: the order in which locks are taken.
template <class F>
void for_each_bit(store::shard_set set, F&& visit) {
  for (; set != 0; set &= set - 1) visit(static_cast<std::size_t>(std::countr_zero(set)));
}

}  // namespace

void store::sweep() {
  // A lock is released now and then, because others wait for it.
  for_each_bit(all_shards, [this](std::size_t i) {
    while (writer(*this, shard_set{1} << i).erase_expired()) {
    }
  });
}

const entry* store::view::find(std::string_view key) const {
  const auto& entries = shards_[index_of(key)].entries;
  const auto place = entries.find(key);
  return place != entries.end() && now_ < place->second.expiry ? &place->second : nullptr;
}

std::size_t store::view::size() const noexcept {
  std::size_t sum = 0;
  for_each_bit(held_, [&](std::size_t i) { sum += shards_[i].entries.size(); });
  return sum;
}

std::size_t store::view::expiring() const noexcept {
  std::size_t sum = 0;
  for_each_bit(held_, [&](std::size_t i) { sum += shards_[i].expiring.size(); });
  return sum;
}

store::reader::reader(store& home, shard_set of) : view(home, of) {
  for_each_bit(held_, [this](std::size_t i) { shards_[i].mutex.lock_shared(); });
  set_clock();
}

store::reader::~reader() {
  for_each_bit(held_, [this](std::size_t i) { shards_[i].mutex.unlock_shared(); });
}

store::writer::writer(store& home, shard_set of) : view(home, of) {
  for_each_bit(held_, [this](std::size_t i) { shards_[i].mutex.lock(); });
  set_clock();
}

store::writer::~writer() {
  for_each_bit(held_, [this](std::size_t i) { shards_[i].mutex.unlock(); });
}

void store::writer::set(std::string_view key, std::string_view value, instant expiry) {
  auto& entries = shards_[index_of(key)].entries;
  if (entries.find(key) == entries.end()) entries.emplace(key, entry{});
  set_value(key, value);
  set_expiry(key, expiry);
}

void store::writer::set_value(std::string_view key, std::string_view value) {
  shards_[index_of(key)].entries.find(key)->second.value = std::string(value);  // frees a larger one
}

void store::writer::set_expiry(std::string_view key, instant expiry) {
  shard& home = shards_[index_of(key)];
  auto& [name, found] = *home.entries.find(key);
  if (expiry != never) home.expiring.emplace(expiry, &name);
  if (found.expiry != never && found.expiry != expiry) home.expiring.erase({found.expiry, &name});
  found.expiry = expiry;
}

bool store::writer::erase(std::string_view key) {
  const bool existed = find(key) != nullptr;
  shard& home = shards_[index_of(key)];
  if (const auto place = home.entries.find(key); place != home.entries.end()) {
    home.expiring.erase({place->second.expiry, &place->first});
    home.entries.erase(place);
  }
  return existed;
}

void store::writer::clear() {
  for_each_bit(held_, [this](std::size_t i) {
    shards_[i].expiring.clear();
    shards_[i].entries.clear();
  });
}

bool store::writer::erase_expired() {
  int left = 1000;
  for_each_bit(held_, [&](std::size_t i) {
    auto& expiring = shards_[i].expiring;
    while (left > 0 && !expiring.empty() && expiring.begin()->first <= now_) {
      erase(*expiring.begin()->second);
      --left;
    }
  });
  return left == 0;
}

}  // namespace kv_server
