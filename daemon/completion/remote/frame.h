#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "daemon/completion/remote/remote_engine.h"

namespace efimd::completion {

/// How a prompt is written as text for a model elsewhere.
struct PromptForm {
  RemoteFrame frame;
  bool suffix_first = false;  ///< after stands before before (FimOrder::kSpm)
};

/// The form of the model of that name, as servers call it: "Qwen/Qwen2.5-Coder-7B". nullopt: unknown.
/// A frame that the user configured goes over it.
std::optional<PromptForm> prompt_form(std::string_view model, const RemoteFrame& configured);

/// The prompt; empty if a text has a part of the frame in it, which the server would take for the
/// frame itself.
std::string framed(const PromptForm& form, std::string_view before, std::string_view after,
                   std::string_view increment);

}  // namespace efimd::completion
