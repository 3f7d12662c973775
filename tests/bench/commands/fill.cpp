#include "tests/bench/completion/fill.h"

#include <fmt/format.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "daemon/cli/commands/source_place.h"
#include "daemon/models/chosen_model.h"
#include "daemon/models/engine_host.h"
#include "daemon/models/model_catalog.h"
#include "lsp/json_rpc.h"
#include "tests/bench/commands/commands.h"

namespace efimd::bench {

using lsp::Json;

namespace {

struct Form {
  std::string name;
  FillOptions options;
};

std::vector<Form> forms_of(const CommandLine& bench) {
  static const std::map<std::string, FillForm> kForms = {
      {"psm", FillForm::kPsm}, {"efim", FillForm::kEfim}, {"healed", FillForm::kHealed}};
  static const std::map<std::string, completion::StopRule> kStops = {
      {"none", completion::StopRule::kNone},
      {"line", completion::StopRule::kLine},
      {"block", completion::StopRule::kBlock}};
  std::vector<Form> forms;
  for (const std::string& name : bench.forms)
    forms.push_back({name, {kForms.at(name), bench.tokens_max, kStops.at(bench.stop)}});
  return forms;
}

Result<Filler> open_filler(const service::Paths& paths) {
  const service::Config config = service::config_in_force(paths);
  const auto model = service::choose_model(config, service::find_model_places());
  if (!model) return tl::unexpected(model.error());
  service::EngineSetup setup;
  setup.model = model->path;
  setup.threads = config.device_threads;
  setup.kv_budget_bytes = service::kv_budget_bytes(config);
  setup.fim = config.fim;
  auto engine = service::make_engine_factory(
      std::move(setup), std::make_shared<service::OpenedModel>())([](double) {}, {});
  if (!engine) return tl::unexpected(engine.error());
  return Filler::open(std::move(*engine));
}

Json json_of(const std::string& form, const Result<Filled>& filled) {
  // One cursor that does not fit is an answer about that cursor; the others go on.
  if (!filled) return {{"form", form}, {"error", filled.error().message()}};
  return {{"form", form},
          {"text", utf8::sanitized(filled->text)},
          {"promptTokens", filled->prompt_tokens},
          {"droppedTokens", filled->dropped_tokens},
          {"generatedTokens", filled->generated_tokens},
          {"promptMs", filled->prompt_ms},
          {"generationMs", filled->generation_ms}};
}

}  // namespace

int run_fill(const service::Paths& paths, const CommandLine& options) {
  const auto text = service::read_text(options.files.front());
  if (!text) return failed(text.error());
  const auto cursors = parse_fill_cursors(*text);
  if (!cursors) return failed(cursors.error());
  auto filler = open_filler(paths);
  if (!filler) return failed(filler.error());
  const std::vector<Form> forms = forms_of(options);
  for (const FillCursor& cursor : *cursors)
    for (const Form& form : forms)
      fmt::print("{}\n", lsp::json_text(json_of(form.name, filler->fill(cursor, form.options))));
  return 0;
}

}  // namespace efimd::bench
