#pragma once

// One suite for several types that promise the same: each test runs for each of the types and each number of workers.
//
//   struct of_event { static constexpr const char* name = "event"; ... };
//   class Gates : public KindsTest<of_event, of_latch> {};
//   ULEXITE_TEST_KINDS(Gates);
//
//   TEST_P(Gates, LetThrough) {
//     for_kind([&]<class Kind> { ... });
//   }

#include "support/runtime_fixture.hpp"

#include <string>
#include <tuple>

namespace ulexite::test {

// A kind says what the tests need to know of its type. The names of the tests end in its `name`.
template <class... Kinds>
class KindsTest : public OneRuntimeTest, public testing::WithParamInterface<std::tuple<std::size_t, std::size_t>> {
 public:
  static constexpr std::size_t kinds = sizeof...(Kinds);
  static std::string name_of(const testing::TestParamInfo<ParamType>& info) {
    const auto [kind, workers] = info.param;
    const char* const names[] = {Kinds::name...};
    return std::string(names[kind]) + "_" + std::to_string(workers);
  }

 protected:
  KindsTest() : OneRuntimeTest(std::get<1>(GetParam())) {}

  // Calls `body` for the kind of this test.
  template <class F>
  void for_kind(F body) {
    std::size_t kind = 0;
    ((kind++ == std::get<0>(GetParam()) ? body.template operator()<Kinds>() : void()), ...);
  }
  // The same in the main fiber of rt().
  template <class F>
  void run_for_kind(F body) {
    run([&] { for_kind(body); });
  }
};

#define ULEXITE_TEST_KINDS(suite)                                                                                 \
  INSTANTIATE_TEST_SUITE_P(                                                                                       \
      Kinds, suite, testing::Combine(testing::Range<std::size_t>(0, suite::kinds), testing::Values(1, 2, 4, 16)), \
      suite::name_of)

}  // namespace ulexite::test
