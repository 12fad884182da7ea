#pragma once

// Programs read metrics, JSON and traces. So their numbers must not follow the locale and the flags of a stream.

#include <ulexite/base/standard.hpp>

#include <locale>
#include <ostream>

namespace ulexite::detail {

// Calls write(stream) with a stream to the buffer of `to`, in the locale "C". Then `to` gets its errors, and may throw.
// The stream itself throws nothing, because a destructor writes too.
template <class Write>
void write_plainly(std::ostream& to, Write&& write) {
  const std::ostream::sentry ready(to);  // flushes what it is tied to, and `to` at the end if it has unitbuf
  std::ostream plain(nullptr);
  plain.imbue(std::locale::classic());  // before it has the buffer, whose own locale stays
  plain.rdbuf(to.rdbuf());
  if (!to) plain.setstate(to.rdstate());
  write(plain);
  if (!plain) to.setstate(plain.rdstate());
}

}  // namespace ulexite::detail
