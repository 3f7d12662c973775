#include "daemon/completion/answer/shape.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "daemon/completion/fit/fit.h"
#include "daemon/completion/fit/unit_ends.h"

namespace efimd::completion {

namespace {

struct Shaped {
  Or<Item> item;
  std::optional<double> confidence;  ///< unset if no token was looked at
};

Shaped shape_one(const Request& request, const CursorContext& context, const Generated& generated) {
  if (generated.new_tokens == 0)
    return {nothing(generated.first_token ? silence::kNothing : silence::kNoBudget), {}};
  if (generated.blank_line) return {nothing(silence::kNothingOnLine), {}};
  if (!request.by_hand && may_be_finished(generated.chances, context, request.options))
    return {nothing(silence::kUnsure), generated.confidence};
  const Confident sure =
      confident_part(generated.text, generated.chances, context, least_confidence(request.options));
  const double confidence = generated.text.empty() ? generated.confidence : sure.confidence;
  if (sure.size == 0 && (generated.end == End::kUnsure || !generated.text.empty()))
    return {nothing(silence::kUnsure), confidence};
  Fitted fitted = fit(std::string_view(generated.text).substr(0, sure.size), context);
  if (fitted.text.empty()) return {nothing(fitted.silence), confidence};
  if (!request.selected)
    return {Item{std::move(fitted.text), context.cursor, fitted.replace_end}, confidence};
  return {Item{request.selected->text + fitted.text, request.selected->begin, fitted.replace_end},
          confidence};
}

}  // namespace

Or<std::vector<Item>> shape(Turn& turn, const std::vector<Generated>& generated) {
  const CursorContext& context = turn.context();
  std::vector<Item> items;
  std::optional<Nothing> why;
  for (const Generated& each : generated) {
    auto [item, confidence] = shape_one(turn.request(), context, each);
    if (item &&
        turn.document.rejections.turned_down(turn.snapshot(), item->replace_begin, item->text))
      item = nothing(silence::kRejected);
    if (items.empty() && (item || !why)) turn.receipt.confidence = confidence;
    if (!item && !why) why = item.error();
    if (item && std::ranges::find(items, item->text, &Item::text) == items.end())
      items.push_back(std::move(*item));
  }
  if (items.empty()) return tl::unexpected(why.value_or(Nothing{}));
  return items;
}

}  // namespace efimd::completion
