#pragma once

#include <type_traits>
#include <utility>
#include <variant>

/// As much of tl::expected as the devices use, for machines without the package (scripts/gpu).
namespace tl {

template <class E>
class unexpected {
 public:
  explicit unexpected(E error) : error_(std::move(error)) {}
  E& value() & { return error_; }
  const E& value() const& { return error_; }
  E&& value() && { return std::move(error_); }

 private:
  E error_;
};

template <class T, class E>
class expected {
  using Value = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

 public:
  expected() requires std::is_default_constructible_v<Value>
  = default;
  template <class U>
  requires(!std::is_void_v<T> && std::is_constructible_v<Value, U&&> &&
           !std::is_same_v<std::remove_cvref_t<U>, expected>) expected(U&& value)
      : held_(std::in_place_index<0>, std::forward<U>(value)) {}
  template <class F>
  expected(const unexpected<F>& error) : held_(std::in_place_index<1>, error.value()) {}
  template <class F>
  expected(unexpected<F>&& error) : held_(std::in_place_index<1>, std::move(error).value()) {}

  explicit operator bool() const { return held_.index() == 0; }
  bool has_value() const { return held_.index() == 0; }
  auto& operator*() & { return std::get<0>(held_); }
  const auto& operator*() const& { return std::get<0>(held_); }
  auto&& operator*() && { return std::get<0>(std::move(held_)); }
  auto* operator->() { return &std::get<0>(held_); }
  const auto* operator->() const { return &std::get<0>(held_); }
  auto& value() & { return std::get<0>(held_); }
  auto&& value() && { return std::get<0>(std::move(held_)); }
  E& error() & { return std::get<1>(held_); }
  const E& error() const& { return std::get<1>(held_); }
  E&& error() && { return std::get<1>(std::move(held_)); }

  template <class F>
  auto and_then(F&& next) && {
    if constexpr (std::is_void_v<T>) {
      using Next = decltype(next());
      return *this ? next() : Next(unexpected<E>(std::move(*this).error()));
    } else {
      using Next = decltype(next(*std::move(*this)));
      return *this ? next(*std::move(*this)) : Next(unexpected<E>(std::move(*this).error()));
    }
  }
  template <class F>
  auto map(F&& change) && {
    using U = decltype(change(*std::move(*this)));
    using Next = expected<U, E>;
    if (!*this) return Next(unexpected<E>(std::move(*this).error()));
    if constexpr (std::is_void_v<U>) {
      change(*std::move(*this));
      return Next();
    } else {
      return Next(change(*std::move(*this)));
    }
  }

 private:
  std::variant<Value, E> held_;
};

}  // namespace tl
