#pragma once

#include <cstdint>  // Boost 1.83's Beast uses it without including it

#include <boost/beast/http/message.hpp>
#include <boost/beast/http/serializer.hpp>
#include <boost/beast/http/write.hpp>

namespace examples {

// Writes an answer, or only its header: the answer to HEAD tells the size of a body that it does not have. Sets
// `error`.
template <class Stream, class Answer>
void write_answer(Stream& to, Answer& answer, bool head_only, boost::system::error_code& error) {
  boost::beast::http::response_serializer<typename Answer::body_type> serializer(answer);
  if (head_only)
    boost::beast::http::write_header(to, serializer, error);
  else
    boost::beast::http::write(to, serializer, error);
}

}  // namespace examples
