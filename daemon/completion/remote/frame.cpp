#include "daemon/completion/remote/frame.h"

#include <algorithm>
#include <array>

namespace efimd::completion {

namespace {

struct Known {
  std::string_view name;  ///< in lower case, without what is no letter and no digit
  std::string_view prefix, suffix, middle;
  bool suffix_first = false;
};

/// From the models' cards; the first whose name is in the model's decides. The tokens of a vocabulary
/// are engine/tokenizer/fim_format.cpp's; here a server makes tokens of text.
constexpr std::array kKnown = {
    Known{"codellama", "<PRE> ", " <SUF>", " <MID>"},
    Known{"qwen", "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"},
    Known{"codegemma", "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"},
    Known{"deepseek", "<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"},
    Known{"starcoder", "<fim_prefix>", "<fim_suffix>", "<fim_middle>"},
    Known{"granite", "<fim_prefix>", "<fim_suffix>", "<fim_middle>"},
    Known{"mellum", "<fim_prefix>", "<fim_suffix>", "<fim_middle>", true},
    Known{"seedcoder", "<[fim-prefix]>", "<[fim-suffix]>", "<[fim-middle]>", true},
    Known{"codestral", "[PREFIX]", "[SUFFIX]", "", true},
};

std::string plain_name(std::string_view name) {
  std::string plain;
  for (const char c : name) {
    if (c >= 'A' && c <= 'Z') plain += static_cast<char>(c - 'A' + 'a');
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) plain += c;
  }
  return plain;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(' '), text.size());
  return text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

}  // namespace

std::optional<PromptForm> prompt_form(std::string_view model, const RemoteFrame& configured) {
  if (!configured.prefix.empty() && !configured.suffix.empty())
    return PromptForm{configured, configured.middle.empty()};
  const std::string name = plain_name(model);
  for (const Known& known : kKnown)
    if (name.find(known.name) != std::string::npos)
      return PromptForm{
          {std::string(known.prefix), std::string(known.suffix), std::string(known.middle)},
          known.suffix_first};
  return std::nullopt;
}

std::string framed(const PromptForm& form, std::string_view before, std::string_view after,
                   std::string_view increment) {
  const auto& [prefix, suffix, middle] = form.frame;
  for (const std::string_view text : {before, after, increment})
    for (const std::string_view part : {trimmed(prefix), trimmed(suffix), trimmed(middle)})
      if (!part.empty() && text.find(part) != std::string_view::npos) return {};
  std::string prompt;
  prompt.reserve(before.size() + after.size() + increment.size() + 64);
  const auto add = [&prompt](std::string_view mark, std::string_view text) {
    prompt += mark;
    prompt += text;
  };
  if (form.suffix_first) add(suffix, after);
  add(prefix, before);
  if (!form.suffix_first) add(suffix, after);
  add(middle, increment);
  return prompt;
}

}  // namespace efimd::completion
