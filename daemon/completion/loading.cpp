#include "daemon/completion/loading.h"

#include <algorithm>
#include <new>
#include <system_error>
#include <utility>

#include "base/limits.h"
#include "daemon/completion/pace.h"

namespace efimd::completion {

namespace {

Result<Budgets> budgets_of(engine::Engine& engine, const CompletionService::Settings& settings,
                           const std::stop_token& stop) {
  const int window = engine.window_tokens();
  Budgets budgets;
  budgets.settle = settings.settle;
  budgets.prompt_tokens_max = budgets.near_tokens_max =
      std::min(settings.prompt_tokens_max, window);
  if (settings.prompt_tokens_max > 0) return budgets;
  Result<prompt::StepCosts> costs = measure_step_costs(engine, stop);
  if (!costs) return tl::unexpected(std::move(costs).error());
  budgets.costs = std::move(*costs);
  budgets.are_fixed = false;
  set_pace(budgets, engine, settings.window_tokens, settings.pace.get());
  return budgets;
}

Result<std::unique_ptr<Worker>> load(const EngineFactory& factory,
                                     const CompletionService::Settings& settings,
                                     const Shared& shared, const std::stop_token& stop) {
  auto engine =
      factory([&shared](double progress) { shared.board.set_load_progress(progress); }, stop);
  if (!engine) return tl::unexpected(std::move(engine).error());
  Result<Budgets> budgets = budgets_of(**engine, settings, stop);
  if (!budgets) return tl::unexpected(std::move(budgets).error());
  auto worker = std::make_unique<Worker>(
      std::move(*engine),
      Worker::Settings{*budgets, settings.documents_max, &shared.index, settings.keeper,
                       &shared.taste, settings.remote, settings.ask_head, settings.shows_edits});
  shared.board.set_remote(worker->remote());
  shared.board.set_ready(worker->engine(), *budgets);
  return worker;
}

}  // namespace

std::unique_ptr<Worker> load_worker(const EngineFactory& factory,
                                    const CompletionService::Settings& settings,
                                    const Shared& shared, const std::stop_token& stop) {
  shared.board.set_loading();
  Result<std::unique_ptr<Worker>> loaded = nullptr;
  try {
    loaded = load(factory, settings, shared, stop);
  } catch (const std::bad_alloc&) {
    loaded = fail(Fault::kNoMemory, "no memory for the model", remedy_for_no_memory());
  } catch (const std::system_error&) {
    loaded = fail(Fault::kNoMemory, "no thread for the model", remedy_for_no_thread());
  }
  if (loaded) return std::move(*loaded);
  shared.board.set_failed(loaded.error());
  return nullptr;
}

void follow_device(Worker& worker, const CompletionService::Settings& settings,
                   const std::stop_token& stop) {
  if (!worker.has_moved()) return;
  auto budgets = budgets_of(worker.engine(), settings, stop);
  if (!budgets && budgets.error().fault == Fault::kStopped) return;
  worker.set_budgets(budgets ? *std::move(budgets) : worker.budgets());
}

}  // namespace efimd::completion
