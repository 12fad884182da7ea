#pragma once

#include <ulexite/base/standard.hpp>

#include <array>
#include <mutex>

namespace ulexite::detail {

// While one exists, descriptors 0 to 2 are open. So descriptors that the library makes and keeps do not become the
// standard streams of a program that was started with these closed. A closed one is open for nothing meanwhile: reads
// and writes of it fail with EBADF, as they would without this. Any thread; one at a time.
class standard_descriptors_taken {
 public:
  standard_descriptors_taken();
  ~standard_descriptors_taken();
  standard_descriptors_taken(const standard_descriptors_taken&) = delete;
  standard_descriptors_taken& operator=(const standard_descriptors_taken&) = delete;

 private:
  std::unique_lock<std::mutex> turn_;  // otherwise another scope would close what this one relies on
  std::array<bool, 3> taken_{};
};

}  // namespace ulexite::detail
