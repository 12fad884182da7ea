// examples/kv_server/request_parser.hpp

#include "../../examples/kv_server/request_parser.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

using namespace kv_server;
using namespace std::string_literals;
using words = std::vector<std::string>;

namespace {

constexpr request_limits small{.value = 100, .request = 150, .arguments = 4};

// The requests parsed from `bytes`, in portions of `size`.
std::vector<words> parse(std::string_view bytes, std::size_t size, const request_limits& limits = small) {
  request_parser parser(limits);
  std::vector<words> all;
  for (std::size_t at = 0; at < bytes.size(); at += size) {
    parser.feed(bytes.substr(at, size));
    while (const auto* const request = parser.next()) all.emplace_back(request->begin(), request->end());
  }
  return all;
}

// The protocol_error that they bring, "" if there is none; the same for portions of any size.
std::string error_of(std::string_view bytes) {
  words errors;
  for (const std::size_t size : {std::size_t{1}, bytes.size()}) {
    try {
      parse(bytes, size);
      errors.emplace_back();
    } catch (const protocol_error& error) {
      errors.emplace_back(error.what());
    }
  }
  EXPECT_EQ(errors[0], errors[1]);
  return errors[0];
}

std::string bulk(const std::string& text) { return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n"; }

TEST(RequestParser, GivesTheSameRequestsForPortionsOfAnySize) {
  const std::string bytes = "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n*0\r\n*-1\r\n PING  a\tb \r\n\r\n\n*1\r\n$0\r\n\r\nQUIT\n"s +
                            "*2\r\n" + bulk("SET") + bulk("a\0b\r\n*1\r\n$1\r\nx"s);
  const std::vector<words> expected{
      {"GET", "k"}, {"PING", "a", "b"}, {""}, {"QUIT"}, {"SET", "a\0b\r\n*1\r\n$1\r\nx"s}};
  for (std::size_t size = 1; size <= bytes.size(); ++size) EXPECT_EQ(parse(bytes, size), expected) << size;
}

TEST(RequestParser, KeepsAnUnfinishedRequest) {
  request_parser parser(small);
  parser.feed("*1\r\n$4\r\nPI");
  EXPECT_EQ(parser.next(), nullptr);
  EXPECT_EQ(parser.next(), nullptr);
  parser.feed("NG\r");
  EXPECT_EQ(parser.next(), nullptr);
  parser.feed("\nDB");
  ASSERT_NE(parser.next(), nullptr);
  EXPECT_EQ(parser.next(), nullptr);
  parser.feed("SIZE\n");
  const auto* const last = parser.next();
  ASSERT_NE(last, nullptr);
  EXPECT_EQ(*last, request_parser::request{"DBSIZE"});
}

TEST(RequestParser, ForgetsWhatIsUsedWhenNoPortionEndsBetweenTwoRequests) {
  request_parser parser(small);
  const std::string portion = "k\r\n*2\r\n$3\r\nGET\r\n$1\r\n";
  std::size_t requests = 0;
  parser.feed(portion.substr(3));
  for (; parser.next() == nullptr && requests < 20'000; ++requests) {
    parser.feed(portion);
    const auto* const request = parser.next();
    ASSERT_NE(request, nullptr);
    ASSERT_EQ(*request, (request_parser::request{"GET", "k"}));
    ASSERT_LT(parser.kept(), 70'000U) << requests;
  }
  EXPECT_EQ(requests, 20'000U);
}

TEST(RequestParser, TakesARequestAtItsLimits) {
  EXPECT_EQ(error_of("*2\r\n" + bulk(std::string(100, 'x')) + bulk(std::string(50, 'y'))), "");
  EXPECT_EQ(error_of("*4\r\n" + bulk("") + bulk("") + bulk("") + bulk("")), "");
  EXPECT_EQ(error_of(std::string(98, ' ') + "a\r\n"), "");
}

TEST(RequestParser, RefusesWhatIsAboveTheLimits) {
  EXPECT_EQ(error_of("*5\r\n"), "invalid multibulk length: 5, the most is 4");
  EXPECT_EQ(error_of("*1\r\n$101\r\n"), "invalid bulk length: 101, the most is 100");
  EXPECT_EQ(error_of("*2\r\n" + bulk(std::string(100, 'x')) + "$51\r\n"), "the arguments have more than 150 bytes");
  EXPECT_EQ(error_of(std::string(101, 'a')), "too big inline request: more than 100 bytes");
  EXPECT_EQ(error_of(std::string(101, 'a') + "\r\n"), "too big inline request: more than 100 bytes");
  EXPECT_EQ(error_of("a b c d e\r\n"), "more than 4 arguments");
}

TEST(RequestParser, RefusesWhatIsNoNumber) {
  EXPECT_EQ(error_of("*x\r\n"), "invalid multibulk length: 'x' is no number");
  EXPECT_EQ(error_of("*\r\n"), "invalid multibulk length: '' is no number");
  EXPECT_EQ(error_of("*99999999999999999999\r\n"), "invalid multibulk length: '99999999999999999999' is no number");
  EXPECT_EQ(error_of("*1\r\n$-1\r\n"), "invalid bulk length: -1");
  EXPECT_EQ(error_of("*1\r\n$1 \r\n"), "invalid bulk length: '1 ' is no number");
  EXPECT_EQ(error_of("*1\r\n$4\nPING\r\n"), "invalid bulk length: '4' is no number");  // a line ends in \r\n
  EXPECT_EQ(error_of("*" + std::string(40, '1')),
            "invalid multibulk length: '" + std::string(32, '1') + "' is no number");
  EXPECT_EQ(error_of("*" + std::string(31, '0') + "\r"),  // as long as a line may be, before its last character
            "invalid multibulk length: '" + std::string(31, '0') + "?' is no number");
}

TEST(RequestParser, RefusesWhatStandsAtTheWrongPlace) {
  EXPECT_EQ(error_of("*1\r\n:1\r\n"), "expected '$', got ':'");
  EXPECT_EQ(error_of("*1\r\n\x01"), "expected '$', got '?'");
  EXPECT_EQ(error_of("*1\r\n$1\r\nabc"), "expected \\r\\n behind an argument, got 'bc'");
}

TEST(RequestParser, GivesWhatCameBeforeTheError) {
  request_parser parser(small);
  parser.feed("PING\r\n*1\r\n!");
  ASSERT_NE(parser.next(), nullptr);
  EXPECT_THROW(parser.next(), protocol_error);
}

TEST(RequestParser, ReadsLargeRequestsOneBehindTheOther) {
  const request_limits large{.value = 300'000, .request = 1'000'000, .arguments = 10'000};
  std::string bytes;
  std::vector<words> expected;
  for (std::size_t i = 0; i < 4; ++i) {
    expected.push_back({"SET", "key", std::string(300'000, static_cast<char>('a' + i))});
    expected.push_back(words(10'000, "x"));
  }
  for (const words& each : expected) {
    bytes += "*" + std::to_string(each.size()) + "\r\n";
    for (const std::string& word : each) bytes += bulk(word);
  }
  EXPECT_TRUE(parse(bytes, 16'384, large) == expected);
}

}  // namespace
