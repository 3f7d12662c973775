#include "lsp/field.h"

#include <cmath>

#include "lsp/excerpt.h"

namespace efimd::lsp {

namespace {

/// Scalars as they stand, strings cut; of the rest only the kind.
std::string shown(const Json* value) {
  if (value == nullptr) return "absent";
  if (value->is_string()) return excerpt(value->get_ref<const std::string&>());
  return value->is_structured() ? value->type_name() : value->dump();
}

/// Clients whose language has one kind of number write 3 as 3.0.
std::optional<std::int64_t> integer_in(const Json& value, std::int64_t min, std::int64_t max) {
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX) return std::nullopt;
  if (value.is_number_float()) {
    const double number = value.get<double>();
    constexpr double kExactMax = 9007199254740992.0;  // 2^53
    if (std::trunc(number) != number || std::abs(number) > kExactMax) return std::nullopt;
  } else if (!value.is_number_integer()) {
    return std::nullopt;
  }
  const auto number = value.get<std::int64_t>();
  if (number < min || number > max) return std::nullopt;
  return number;
}

}  // namespace

const Json& Field::json() const {
  static const Json kNull;
  return there() ? *value_ : kNull;
}

void Field::refuse(std::string_view expected) const {
  reading_->refuse(path_ + " must be " + std::string(expected) + ", not " + shown(value_));
}

Field Field::member(std::string_view name) const {
  std::string path = path_ + "." + std::string(name);
  const bool empty_array = there() && value_->is_array() && value_->empty();
  if (there() && !value_->is_object() && !empty_array) refuse("an object");
  if (!there() || !value_->is_object()) return Field(*reading_, nullptr, std::move(path));
  const auto found = value_->find(name);
  const bool absent = found == value_->end() || found->is_null();
  return Field(*reading_, absent ? nullptr : &*found, std::move(path));
}

std::size_t Field::array_size() const {
  if (!there()) return 0;
  if (value_->is_array()) return value_->size();
  refuse("an array");
  return 0;
}

Field Field::element(std::size_t index) const {
  return Field(*reading_, (*value_)[index], path_ + "[" + std::to_string(index) + "]");
}

std::string Field::string(std::size_t bytes_max) const {
  if (!there()) refuse("a string");
  return optional_string(bytes_max).value_or("");
}

std::int64_t Field::integer(std::int64_t min, std::int64_t max) const {
  if (!there()) refuse("an integer");
  return optional_integer(min, max).value_or(min);
}

std::optional<std::string> Field::optional_string(std::size_t bytes_max) const {
  if (!there()) return std::nullopt;
  if (!value_->is_string()) {
    refuse("a string");
    return std::nullopt;
  }
  const auto& text = value_->get_ref<const std::string&>();
  if (text.size() <= bytes_max) return text;
  refuse("at most " + std::to_string(bytes_max) + " bytes long");
  return std::nullopt;
}

std::optional<std::int64_t> Field::optional_integer(std::int64_t min, std::int64_t max) const {
  if (!there()) return std::nullopt;
  const std::optional<std::int64_t> number = integer_in(*value_, min, max);
  if (!number) refuse("an integer from " + std::to_string(min) + " to " + std::to_string(max));
  return number;
}

std::optional<double> Field::optional_number(double min, double max) const {
  if (!there()) return std::nullopt;
  if (value_->is_number()) {
    const double number = value_->get<double>();
    if (number >= min && number <= max) return number;
  }
  refuse("a number from " + Json(min).dump() + " to " + Json(max).dump());
  return std::nullopt;
}

std::optional<bool> Field::optional_boolean() const {
  if (!there()) return std::nullopt;
  if (value_->is_boolean()) return value_->get<bool>();
  refuse("true or false");
  return std::nullopt;
}

}  // namespace efimd::lsp
