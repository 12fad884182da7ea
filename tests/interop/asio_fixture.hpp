#pragma once

#include "support/runtime_fixture.hpp"

#include <ulexite/interop/asio_fiber.hpp>

#include <boost/asio/io_context.hpp>

namespace ulexite::test {

// With an io_context that a thread of its own runs.
class AsioTest : public WorkersTest {
 protected:
  boost::asio::io_context io_{1};
  const io_context_thread thread_{io_};
};

}  // namespace ulexite::test
