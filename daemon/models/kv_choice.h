#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/models/kv_error.h"
#include "engine/backend/kv_type.h"
#include "engine/model/model.h"

namespace efimd::service {

/// The measured loss of 8-bit KV, by model and by this machine's kernels. Kept in the state folder,
/// so that each is measured once.
///
/// Thread: any one.  Limits: kKeptMax models; a damaged file counts as none.
class KvErrors {
 public:
  static constexpr std::size_t kKeptMax = 100;
  explicit KvErrors(std::filesystem::path file) : file_(std::move(file)) {}

  /// `kernels` names the arithmetic; the loss of another one is measured anew.
  std::optional<KvError> find(const Digest& model, std::string_view kernels) const;
  /// If it cannot be written, it is measured again next time.
  void keep(const Digest& model, std::string_view kernels, const KvError& error) const;

 private:
  std::filesystem::path file_;
};

/// The arithmetic that measures, "cpu avx512". The CPU measures for every device, because the loss
/// happens in storing, and all devices store alike.
std::string kv_kernels();

/// "next token as with f16 at 99.8 % of 512 places, mean divergence 0.0008, 8 of 8 completions the
/// same"
std::string kv_error_text(const KvError& error);

/// The type of KV to use, and why.
struct KvChoice {
  engine::KvType type = engine::KvType::kF16;
  std::string reason;
};

struct KvChoiceSetup {
  engine::KvType wanted = engine::KvType::kF16;
  int threads = 0;
  std::filesystem::path errors_file;  ///< of KvErrors
};

/// kQ8 if it is wanted and its error is small (daemon/models/kv_error.h). The error is measured on
/// the CPU when a model is first loaded with q8, and remembered. Measuring takes about ten seconds
/// for half a billion parameters; at most kMeasuringMax, but at least one prompt. Never fails: if
/// q8 cannot be measured, it is not used. `stop` is seen within a layer of the model; the
/// measurement is then lost.
KvChoice choose_kv_type(const std::shared_ptr<const engine::Model>& model,
                        const KvChoiceSetup& setup, const std::stop_token& stop);
inline constexpr auto kMeasuringMax = std::chrono::seconds(20);

/// FIM prompts of real code for the measurement, 192 tokens at most.
std::vector<std::vector<engine::TokenId>> kv_error_prompts(const engine::Tokenizer& tokenizer);

}  // namespace efimd::service
