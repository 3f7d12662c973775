// The part of Session that LSP has no words for: what is shown and looked at, and how the model is.
// docs/protocol.md has the fields; a client that knows none of it misses nothing but the counts.
#include <spdlog/logger.h>

#include <algorithm>
#include <cmath>

#include "daemon/server/session.h"

namespace efimd::service {

using lsp::Json;

namespace {

const char* state_name(completion::EngineState state, bool thinking) {
  switch (state) {
    case completion::EngineState::kLoading:
      return "loading";
    case completion::EngineState::kReady:
      return thinking ? "thinking" : "ready";
    case completion::EngineState::kFailed:
      return "failed";
  }
  return "failed";
}

/// Whole percents: a file that is read in small steps is not worth a message for each.
double rounded(double progress) { return std::round(std::clamp(progress, 0.0, 1.0) * 100) / 100; }

}  // namespace

void Session::tell_state() {
  if (!states_ || state_ != State::kServing) return;
  const ModelProgress model = host_.model_progress();
  Json now = {{"name", state_name(model.state, !pending_.empty())},
              {"progress", rounded(model.progress)},
              {"message", model.failure}};
  if (now == state_told_) return;
  state_told_ = now;
  notify("efim/state", std::move(now));
}

void Session::cache(const lsp::Message& message) {
  auto request = cache_request_from(message.params);
  if (!request)
    return refuse(message.id, lsp::ErrorCode::kInvalidParams, request.error().message());
  host_.cache(std::move(*request), [self = weak_from_this(), id = message.id](Result<Json> answer) {
    const auto session = self.lock();
    if (!session || session->state_ == State::kEnded) return;
    if (answer) return session->answer(id, std::move(*answer));
    session->refuse(id, lsp::ErrorCode::kRequestFailed, answer.error().message());
  });
}

void Session::did_focus(const lsp::Message& message) {
  const auto params = params_of<lsp::EfimDidFocusParams>(message);
  if (!params || !documents_.contains(params->uri)) return;
  focused_ = params->uri;
  host_.focus_document({id_, params->uri});
}

void Session::did_show(const lsp::Message& message) {
  if (params_of<lsp::EfimDidShowParams>(message)) ++shown_;
}

void Session::did_dismiss(const lsp::Message& message) {
  const auto params = params_of<lsp::EfimDidDismissParams>(message);
  if (!params) return;
  const auto open = documents_.find(params->uri);
  if (open == documents_.end()) return;
  ++dismissed_;
  host_.dismiss_suggestion({{id_, params->uri}, open->second.document.snapshot()});
}

void Session::did_partially_accept(const lsp::Message& message) {
  if (params_of<lsp::EfimDidPartiallyAcceptParams>(message)) ++accepted_partly_;
}

}  // namespace efimd::service
