#include "engine/model/model.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "base/utf8.h"
#include "engine/model/model_reader.h"

namespace efimd::engine {
namespace {

constexpr std::size_t kDigestSampleBytes = 4096;

std::uint64_t tensor_bytes(const TensorView& tensor) {
  return static_cast<std::uint64_t>(tensor.row_bytes()) * static_cast<std::uint64_t>(tensor.rows);
}

Digest digest_file(const GgufFile& file) {
  Digest digest = digest_of(file.bytes().first(file.data_start()));
  const std::uint64_t size = file.bytes().size();
  digest = digest_of(std::as_bytes(std::span(&size, 1)), digest);
  for (const auto& [name, tensor] : file.tensors()) {
    const std::size_t sample = std::min<std::size_t>(tensor_bytes(tensor), kDigestSampleBytes);
    digest = digest_of({tensor.data, sample}, digest);
  }
  return digest;
}

/// A tensor that holds all experts' matrices, as blk.0.ffn_up_exps.weight.
bool is_of_experts(std::string_view name) { return name.ends_with("_exps.weight"); }

/// The type of most weight bytes.
std::string dominant_type(const GgufFile& file) {
  std::map<TensorType, std::uint64_t> bytes;
  for (const auto& [name, tensor] : file.tensors()) bytes[tensor.type] += tensor_bytes(tensor);
  const auto most = std::max_element(
      bytes.begin(), bytes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return std::string(tensor_type_name(most->first));
}

/// Files that lie beside models and are none, by general.type.
struct NoModel {
  std::string_view type, what, remedy;
};
constexpr std::array kNoModels = {
    NoModel{"adapter", "a LoRA adapter, which changes another model",
            "name that model, with the adapter merged into it (llama-export-lora)"},
    NoModel{"imatrix", "an importance matrix, which quantizing a model reads",
            "name the model's file"},
    NoModel{"mmproj", "a model's part for pictures or sound", "name the model's file"},
};

Result<void> refuse_no_model(const GgufFile& file) {
  const auto* const found =
      std::ranges::find(kNoModels, file.string("general.type").value_or(""), &NoModel::type);
  if (found == kNoModels.end()) return {};
  return fail(Fault::kUnsupported,
              file.name() + ": is " + std::string(found->what) + " (key general.type)",
              std::string(found->remedy));
}

}  // namespace

Result<std::shared_ptr<const Model>> Model::open(const std::filesystem::path& path,
                                                 const FimOverride& fim) {
  Result<GgufFile> opened = GgufFile::open(path);
  if (!opened) return tl::unexpected<Error>(std::move(opened.error()));
  return from(std::move(*opened), path, fim);
}

Result<std::shared_ptr<const Model>> Model::from(GgufFile read, const std::filesystem::path& path,
                                                 const FimOverride& fim) {
  const std::shared_ptr<Model> model(new Model());
  model->path_ = path;
  model->file_ = std::make_unique<GgufFile>(std::move(read));
  const GgufFile& file = *model->file_;
  if (file.integer("split.count").value_or(0) > 1)
    return fail(Fault::kUnsupported,
                file.name() + ": is one of several files of a model (key split.count)",
                "join them with llama-gguf-split --merge, or use a model of one file");
  if (auto good = refuse_no_model(file); !good) return tl::unexpected<Error>(good.error());
  if (file.tensors().empty() && file.unreadable().empty())
    return fail(Fault::kUnsupported, file.name() + ": has no weights, only a vocabulary",
                "name a model's file");

  ModelReader reader(file);
  Result<ModelShape> shape = reader.read_shape();
  if (!shape) return tl::unexpected<Error>(std::move(shape.error()));
  Result<std::unique_ptr<Tokenizer>> tokenizer = Tokenizer::from_gguf(file, fim);
  if (!tokenizer) return tl::unexpected<Error>(std::move(tokenizer.error()));
  shape->vocabulary = (*tokenizer)->size();
  Result<ModelWeights> weights = reader.read_weights(*shape);
  if (!weights) return tl::unexpected<Error>(std::move(weights.error()));

  model->shape_ = *shape;
  model->tokenizer_ = std::move(*tokenizer);
  model->weights_ = std::move(*weights);
  model->describe();
  if (!file.intact())
    return fail(Fault::kIo, file.name() + ": was changed while it was read", "try again");
  return std::shared_ptr<const Model>(model);
}

void Model::describe() {
  const GgufFile& file = *file_;
  const auto name = file.string("general.name").value_or("");
  name_ = name.empty() ? path_.stem().string() : utf8::sanitized(name);
  digest_ = digest_file(file);
  file_type_ = dominant_type(file);
  fragment_trained_ = file.integer("efim.fragment_trained").value_or(0) != 0;
  const auto experts = static_cast<std::uint64_t>(std::max(shape_.experts, 1));
  const auto used = static_cast<std::uint64_t>(std::max(shape_.experts_used, 1));
  for (const auto& [tensor_name, tensor] : file.tensors()) {
    const std::uint64_t elements =
        static_cast<std::uint64_t>(tensor.rows) * static_cast<std::uint64_t>(tensor.cols);
    parameters_ += elements;
    active_parameters_ += is_of_experts(tensor_name) ? elements / experts * used : elements;
    weight_bytes_ += tensor_bytes(tensor);
  }
}

}  // namespace efimd::engine
