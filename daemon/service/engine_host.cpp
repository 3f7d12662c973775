#include "daemon/service/engine_host.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include "daemon/completion/page_keeper.h"
#include "engine/backend/backend.h"
#include "engine/backend/cpu/cpu_backend.h"
#include "engine/engine.h"
#include "engine/model/model.h"

namespace efimd::service {

namespace {

/// Weights are read ahead in pieces of this size; a stop is seen between them.
constexpr std::size_t kReadAheadBytes = std::size_t{16} << 20;
/// Fewer tokens of KV than this leave no room for a prompt worth asking.
constexpr std::size_t kWindowTokensMin = 256;

std::string_view fim_order_name(engine::FimOrder order) {
  switch (order) {
    case engine::FimOrder::kPsm:
      return "psm";
    case engine::FimOrder::kSpm:
      return "spm";
    case engine::FimOrder::kNone:
      return "none";
  }
  return "none";
}

std::size_t memory_bytes() {
  return static_cast<std::size_t>(std::max(0L, ::sysconf(_SC_PHYS_PAGES))) *
         static_cast<std::size_t>(std::max(0L, ::sysconf(_SC_PAGESIZE)));
}

/// Brings one piece of the mapping into memory and into this process's page table.
void touch(std::span<const std::byte> piece, std::size_t page_bytes) {
  volatile std::byte sink{};
  for (std::size_t at = 0; at < piece.size(); at += page_bytes) sink = piece[at];
  static_cast<void>(sink);
}

/// Reads the mapped weights once, so that the first keystroke does not wait for the disk. Weights
/// that would crowd the machine's memory are left to be read as they are used.
Result<void> read_ahead(std::span<const std::byte> bytes,
                        const std::function<void(double)>& progress, const std::stop_token& stop) {
  if (bytes.size() > memory_bytes() / 4 * 3) return {};
  const auto page_bytes = static_cast<std::size_t>(std::max(4096L, ::sysconf(_SC_PAGESIZE)));
  for (std::size_t at = 0; at < bytes.size(); at += kReadAheadBytes) {
    if (stop.stop_requested()) return fail(Fault::kStopped, "loading the model was stopped");
    const auto piece = bytes.subspan(at, std::min(kReadAheadBytes, bytes.size() - at));
    // The mapping starts on a page and pieces are whole pages, as madvise wants; a refusal only
    // costs speed.
    ::posix_madvise(const_cast<std::byte*>(piece.data()), piece.size(), POSIX_MADV_WILLNEED);
    touch(piece, page_bytes);
    progress(static_cast<double>(at + piece.size()) / static_cast<double>(bytes.size()));
  }
  return {};
}

/// How many pages of KV the budget holds; kNoMemory when that is too little to work with.
Result<int> pages_within(std::size_t budget_bytes, const engine::ModelShape& shape) {
  const std::size_t page_bytes = shape.kv_bytes_per_token() * engine::kPageTokens;
  const std::size_t pages = page_bytes == 0 ? 0 : budget_bytes / page_bytes;
  const auto context = static_cast<std::size_t>(std::max(0, shape.context_tokens));
  if (pages * engine::kPageTokens < std::min(kWindowTokensMin, context))
    return fail(Fault::kNoMemory,
                fmt::format("{} MiB for KV hold only {} tokens of this model", budget_bytes >> 20,
                            pages * engine::kPageTokens),
                fmt::format("set cache.memory_mb to {} or more",
                            ((kWindowTokensMin * shape.kv_bytes_per_token()) >> 20) + 1));
  return static_cast<int>(std::min<std::size_t>(pages, std::numeric_limits<int>::max()));
}

Result<std::unique_ptr<engine::Engine>> open_engine(const EngineSetup& setup, OpenedModel& opened,
                                                    const std::function<void(double)>& progress,
                                                    const std::stop_token& stop) {
  if (!setup.model) return tl::unexpected(setup.model.error());
  auto model = engine::Model::open(*setup.model, setup.fim);
  if (!model) return tl::unexpected(model.error());
  opened.set(model_info(**model));
  auto pages = pages_within(setup.kv_budget_bytes, (*model)->shape());
  if (!pages) return tl::unexpected(pages.error());
  if (auto read = read_ahead((*model)->file().bytes(), progress, stop); !read)
    return tl::unexpected(read.error());
  engine::CpuOptions cpu;
  cpu.threads = setup.threads;
  cpu.page_count = *pages;
  auto backend = engine::make_cpu_backend(*model, cpu);
  if (!backend) return tl::unexpected(backend.error());
  engine::EngineOptions options;
  options.kv_budget_bytes = setup.kv_budget_bytes;
  options.store = setup.keeper;
  if (setup.keeper)
    setup.keeper->begin(
        {(*model)->digest(), (*model)->name(),
         fmt::format("{}, pages of {}", (*backend)->page_format(), engine::kPageTokens),
         (*backend)->page_bytes()});
  return engine::make_engine(*model, std::move(*backend), options);
}

}  // namespace

ModelInfo model_info(const engine::Model& model) {
  ModelInfo info;
  info.name = model.name();
  info.path = model.path().string();
  info.architecture = model.shape().architecture;
  info.parameters = model.parameters();
  info.file_type = model.file_type();
  info.fim_order = fim_order_name(model.tokenizer().fim().order);
  info.digest = model.digest().hex();
  return info;
}

void OpenedModel::set(ModelInfo info) {
  const std::lock_guard lock(mutex_);
  info_ = std::move(info);
}

std::optional<ModelInfo> OpenedModel::get() const {
  const std::lock_guard lock(mutex_);
  return info_;
}

completion::EngineFactory make_engine_factory(EngineSetup setup,
                                              std::shared_ptr<OpenedModel> opened) {
  return [setup = std::move(setup), opened = std::move(opened)](
             const std::function<void(double)>& progress, std::stop_token stop) {
    return open_engine(setup, *opened, progress, stop);
  };
}

}  // namespace efimd::service
