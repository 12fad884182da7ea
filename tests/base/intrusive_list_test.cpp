#include <ulexite/base/intrusive_list.hpp>

#include <gtest/gtest.h>

#include <vector>

namespace {

using ulexite::detail::intrusive_list;
using ulexite::detail::intrusive_queue;
using ulexite::detail::list_hook;

struct link {
  int value = 0;
  link* next = nullptr;
};

struct item : list_hook {
  explicit item(int number) : value(number) {}
  int value;
};

std::vector<int> drain(intrusive_queue<link>& queue) {
  std::vector<int> values;
  while (const link* const one = queue.pop()) values.push_back(one->value);
  return values;
}

std::vector<int> drain(intrusive_list<item>& list) {
  std::vector<int> values;
  while (const item* const one = list.pop_front()) values.push_back(one->value);
  return values;
}

TEST(IntrusiveQueue, IsFirstInFirstOut) {
  intrusive_queue<link> queue;
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.pop(), nullptr);
  link links[] = {{1}, {2}, {3}};
  for (link& each : links) queue.push(each);
  EXPECT_EQ(queue.size(), 3u);
  EXPECT_EQ(drain(queue), (std::vector{1, 2, 3}));
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.size(), 0u);
}

TEST(IntrusiveQueue, CanBeFilledAgainOnceItWasEmpty) {
  intrusive_queue<link> queue;
  link one{1}, two{2};
  queue.push(one);
  EXPECT_EQ(queue.pop(), &one);
  queue.push(two);
  queue.push(one);
  EXPECT_EQ(drain(queue), (std::vector{2, 1}));
}

TEST(IntrusiveQueue, SplicesAllOfAnotherBehindItsOwn) {
  intrusive_queue<link> queue, other;
  link links[] = {{1}, {2}, {3}, {4}};
  queue.splice(other);
  EXPECT_TRUE(queue.empty());
  other.push(links[0]);
  other.push(links[1]);
  queue.splice(other);
  EXPECT_TRUE(other.empty());
  EXPECT_EQ(other.pop(), nullptr);
  other.push(links[2]);
  queue.splice(other);
  queue.push(links[3]);
  EXPECT_EQ(queue.size(), 4u);
  EXPECT_EQ(drain(queue), (std::vector{1, 2, 3, 4}));
}

TEST(IntrusiveQueue, ForgetsTheOldSuccessorOfAnItem) {
  intrusive_queue<link> queue;
  link one{1}, two{2};
  one.next = &two;
  queue.push(one);
  EXPECT_EQ(drain(queue), (std::vector{1}));
}

TEST(IntrusiveList, KeepsTheOrderOfBothEnds) {
  intrusive_list<item> list;
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(list.pop_front(), nullptr);
  item one{1}, two{2}, three{3};
  list.push_back(two);
  list.push_back(three);
  list.push_front(one);
  EXPECT_EQ(list.front().value, 1);
  EXPECT_EQ(list.back().value, 3);
  EXPECT_EQ(drain(list), (std::vector{1, 2, 3}));
}

TEST(IntrusiveList, RemovesAnyItemOnce) {
  intrusive_list<item> list;
  item items[] = {item{0}, item{1}, item{2}, item{3}};
  for (item& each : items) list.push_back(each);
  for (const int i : {2, 0, 3}) {
    EXPECT_TRUE(items[i].linked());
    intrusive_list<item>::remove(items[i]);
    EXPECT_FALSE(items[i].linked());
  }
  list.push_back(items[0]);
  EXPECT_EQ(drain(list), (std::vector{1, 0}));
  for (const item& each : items) EXPECT_FALSE(each.linked());
}

TEST(IntrusiveList, LeavesItsItemsAloneWhenItGoes) {
  item one{1};
  {
    intrusive_list<item> list;
    list.push_back(one);
  }
  EXPECT_EQ(one.value, 1);
}

}  // namespace
