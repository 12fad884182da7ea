#pragma once

// The values of interop/postgres.hpp: its errors, the parameters of statements, and results with typed columns.

#include <ulexite/base/error.hpp>

#include <libpq-fe.h>

#include <array>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace ulexite::postgres {

// The server refused a statement or a connection. A connection that it concerns can be used further.
class sql_error : public std::runtime_error {
 public:
  // `state` is the SQLSTATE. `statement` is the number of the statement in its batch.
  sql_error(std::string_view state, const std::string& what, std::size_t statement = 0)
      : std::runtime_error(what), statement_(statement) {
    state.copy(state_.data(), 5);
  }
  // The SQLSTATE, such as "23505" for a unique key that exists.
  [[nodiscard]] std::string_view state() const noexcept { return state_.data(); }
  // Which statement of a batch, from 0.
  [[nodiscard]] std::size_t statement() const noexcept { return statement_; }
  // Whether the same transaction may succeed if it is repeated: a serialization failure or a deadlock.
  [[nodiscard]] bool may_succeed_later() const noexcept { return state() == "40001" || state() == "40P01"; }

 private:
  std::array<char, 6> state_{};
  std::size_t statement_;
};

// The connection is gone, or was never made.
class connection_lost : public std::runtime_error {
 public:
  // `sent` is whether the server may have executed the statement.
  connection_lost(const std::string& what, bool sent) : std::runtime_error(what), sent_(sent) {}
  // Whether the server may have executed the statement. If not, it is safe to repeat it.
  [[nodiscard]] bool sent() const noexcept { return sent_; }

 private:
  bool sent_;
};

// A value of a result does not fit into the type that the program asked for.
class value_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

namespace detail {

template <auto Free>
struct free_with {
  void operator()(auto* what) const noexcept { Free(what); }
};

template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;
template <class T>
inline constexpr bool is_unknown = false;
template <class T>
concept number = std::is_arithmetic_v<T> && !std::same_as<T, bool> && !std::same_as<T, char>;
using bytes = std::vector<std::byte>;

inline std::string hex_of(std::span<const std::byte> data) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text = "\\x";
  for (const std::byte each : data) {
    const auto value = std::to_integer<std::size_t>(each);
    (text += digits[value >> 4]) += digits[value & 15];
  }
  return text;
}

// libpq would take the text before a NUL for the whole.
inline void refuse_nul(const char* what, std::string_view text, const char* advice = "") {
  if (const auto at = text.find('\0'); at != text.npos)
    throw usage_error(std::string("ulexite::postgres: ") + what + " has a NUL at " + std::to_string(at) + " of " +
                      std::to_string(text.size()) + advice);
}

// A parameter as text; none for NULL.
template <class T>
std::optional<std::string> to_parameter(const T& value) {
  if constexpr (std::same_as<T, std::nullptr_t> || std::same_as<T, std::nullopt_t>) {
    return std::nullopt;
  } else if constexpr (is_optional<T>) {
    return value ? to_parameter(*value) : std::nullopt;
  } else if constexpr (std::same_as<T, bool>) {
    return value ? "t" : "f";
  } else if constexpr (number<T>) {
    std::array<char, 64> text;
    return std::string(text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr);
  } else if constexpr (std::convertible_to<const T&, std::string_view>) {
    const std::string_view text = value;
    refuse_nul("a text parameter", text, ": pass binary data as a span of std::byte");
    return std::string(text);
  } else if constexpr (std::convertible_to<const T&, std::span<const std::byte>>) {
    return hex_of(value);
  } else {
    static_assert(is_unknown<T>, "a parameter is a number, a bool, text, a span of std::byte, nullptr or an optional");
  }
}

// Pointers to the texts, as libpq takes them.
template <class Texts, class Pointers>
void point_to(const Texts& texts, Pointers& pointers) {
  for (std::size_t i = 0; i < texts.size(); ++i) pointers[i] = texts[i] ? texts[i]->c_str() : nullptr;
}

template <std::size_t Count>
class parameters {
 public:
  template <class... P>
  explicit parameters(const P&... values) : texts_{to_parameter(values)...} {
    point_to(texts_, pointers_);
  }
  parameters(const parameters&) = delete;
  parameters& operator=(const parameters&) = delete;
  [[nodiscard]] static int size() { return static_cast<int>(Count); }
  [[nodiscard]] const char* const* data() const { return pointers_.data(); }

 private:
  std::array<std::optional<std::string>, Count> texts_;
  std::array<const char*, Count + 1> pointers_{};  // no array of size 0
};

// False: `text` is no T.
template <class T>
bool parse(std::string_view text, T& value) {
  if constexpr (std::same_as<T, bool>) {
    value = text == "t";
    return text == "t" || text == "f";
  } else if constexpr (number<T>) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size();
  } else if constexpr (std::same_as<T, std::string> || std::same_as<T, std::string_view>) {
    value = text;
    return true;
  } else if constexpr (std::same_as<T, bytes>) {
    if (!text.starts_with("\\x") || text.size() % 2 != 0) return false;
    for (std::size_t i = 2; i < text.size(); i += 2) {
      std::uint8_t byte = 0;
      if (std::from_chars(&text[i], &text[i] + 2, byte, 16).ptr != &text[i] + 2) return false;
      value.push_back(std::byte{byte});
    }
    return true;
  } else {
    static_assert(is_unknown<T>,
                  "a column is read as a number, bool, std::string, std::string_view or "
                  "std::vector<std::byte>, or as an optional of these");
  }
}

}  // namespace detail

// A row of a result, which must live longer.
class row {
 public:
  // The column, from 0 or by its name, as a T: a number, bool, std::string, std::string_view (as long as the result
  // lives), std::vector<std::byte> for bytea, or a std::optional of these, which is empty for NULL. Throws value_error
  // if the value is no T, or NULL and T is no optional; usage_error if there is no such column.
  template <class T>
  [[nodiscard]] T get(int column) const {
    if (column < 0 || column >= columns())
      throw usage_error("ulexite::postgres: there is no column " + std::to_string(column) + " among " +
                        std::to_string(columns()));
    if constexpr (detail::is_optional<T>) {
      if (PQgetisnull(of_, index_, column)) return std::nullopt;
      return get<typename T::value_type>(column);
    } else {
      if (PQgetisnull(of_, index_, column)) refuse(column, "NULL, which needs a std::optional");
      const std::string_view text(PQgetvalue(of_, index_, column),
                                  static_cast<std::size_t>(PQgetlength(of_, index_, column)));
      T value{};
      if (!detail::parse(text, value)) refuse(column, "\"" + std::string(text) + "\", which the type cannot hold");
      return value;
    }
  }
  template <class T>
  [[nodiscard]] T get(const char* column) const {
    const int number = PQfnumber(of_, column);
    if (number < 0) throw usage_error("ulexite::postgres: there is no column \"" + std::string(column) + "\"");
    return get<T>(number);
  }

  // All columns in their order: `const auto [id, name] = row.as<int, std::string>();`. For a struct:
  // std::make_from_tuple<user>(row.as<int, std::string>()). Throws as get does, and usage_error for another number of
  // columns.
  template <class... T>
  [[nodiscard]] std::tuple<T...> as() const {
    if (sizeof...(T) != static_cast<std::size_t>(columns()))
      throw usage_error("ulexite::postgres: a row of " + std::to_string(columns()) + " columns was read as " +
                        std::to_string(sizeof...(T)));
    return [&]<int... I>(std::integer_sequence<int, I...>) {
      return std::tuple<T...>{get<T>(I)...};
    }(std::make_integer_sequence<int, static_cast<int>(sizeof...(T))>());
  }

  // The number of columns.
  [[nodiscard]] int columns() const noexcept { return PQnfields(of_); }

 private:
  friend class result;
  row(const PGresult* of, int index) noexcept : of_(of), index_(index) {}

  [[noreturn]] void refuse(int column, const std::string& what) const {
    throw value_error("ulexite::postgres: column \"" + std::string(PQfname(of_, column)) + "\" of row " +
                      std::to_string(index_) + " is " + what);
  }

  const PGresult* of_;
  int index_;
};

// What a statement gave: its rows, and how many it changed. Movable. Any thread may read it.
class result {
 public:
  // No result.
  result() = default;
  // Takes the PGresult over; null: no result.
  explicit result(PGresult* of) noexcept : of_(of) {}

  // The number of rows.
  [[nodiscard]] int size() const noexcept { return PQntuples(of_.get()); }
  // Whether there are no rows.
  [[nodiscard]] bool empty() const noexcept { return size() == 0; }
  // The row, from 0. Throws usage_error if there is no such row.
  [[nodiscard]] row operator[](int index) const {
    if (index < 0 || index >= size())
      throw usage_error("ulexite::postgres: there is no row " + std::to_string(index) + " among " +
                        std::to_string(size()));
    return {of_.get(), index};
  }
  // The first column of the first row, as row::get. Throws usage_error if there are no rows.
  template <class T>
  [[nodiscard]] T value() const {
    return (*this)[0].get<T>(0);
  }
  // How many rows an INSERT, UPDATE, DELETE or COPY changed, or a SELECT gave; 0 for other statements.
  [[nodiscard]] long affected() const noexcept { return std::strtol(PQcmdTuples(of_.get()), nullptr, 10); }

  // Runs over the rows: `for (const auto row : db.exec("SELECT ..."))`.
  class iterator {
   public:
    using value_type = row;
    using difference_type = std::ptrdiff_t;
    iterator() = default;
    row operator*() const noexcept { return {of_, index_}; }
    iterator& operator++() noexcept {
      ++index_;
      return *this;
    }
    iterator operator++(int) noexcept { return {of_, index_++}; }
    friend bool operator==(const iterator&, const iterator&) = default;

   private:
    friend result;
    iterator(const PGresult* of, int index) noexcept : of_(of), index_(index) {}

    const PGresult* of_ = nullptr;
    int index_ = 0;
  };
  // The first row, and the end.
  [[nodiscard]] iterator begin() const noexcept { return {of_.get(), 0}; }
  [[nodiscard]] iterator end() const noexcept { return {of_.get(), size()}; }

  // For functions of libpq; null if there is no result.
  [[nodiscard]] PGresult* native_handle() const noexcept { return of_.get(); }
  // Whether there is a result.
  [[nodiscard]] explicit operator bool() const noexcept { return of_ != nullptr; }

 private:
  std::unique_ptr<PGresult, detail::free_with<PQclear>> of_;
};

// Statements that are sent together, for connection::run and pool::run.
class batch {
 public:
  // Appends a statement with its parameters, as exec takes them. Throws as exec does for a bad parameter.
  template <class... P>
  void add(std::string sql, const P&... parameters) {
    detail::refuse_nul("a statement", sql);
    statements_.push_back({std::move(sql), {detail::to_parameter(parameters)...}});
  }
  // The number of statements.
  [[nodiscard]] std::size_t size() const noexcept { return statements_.size(); }

 private:
  friend class connection;
  struct statement {
    std::string sql;
    std::vector<std::optional<std::string>> parameters;
  };
  std::vector<statement> statements_;
};

}  // namespace ulexite::postgres
