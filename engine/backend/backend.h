#pragma once

#include <cstddef>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/types.h"

namespace efimd::engine {

/// Rows of a step that belong to one sequence: `count` rows from `first`, at consecutive positions.
struct StepSequence {
  int first = 0;
  int count = 0;
  int position = 0;  ///< of the first row: the tokens already in KV (C)
  /// Pages of the whole sequence including the new rows: token c lies in page_table[c / P], slot c
  /// % P.
  std::span<const PageIndex> page_table;
};

/// One evaluation: T tokens of one or more sequences, evaluated together so that the weights are
/// read once.
struct Step {
  std::span<const TokenId> tokens;  ///< [T], T <= Backend::step_tokens_max()
  std::span<const StepSequence> sequences;
  /// Rows, below T, whose logits are wanted, usually each sequence's last.
  std::span<const int> logits_rows;
};

/// A device that holds a model's weights and KV pages and runs layer-sized operations on them.
///
/// The forward pass (engine/backend/backend.cpp) is written once over this interface. ModelShape
/// and the weights that are present say how an architecture differs; that happens inside an
/// operation. Activations stay on the device between calls: x [T][D] is the residual stream.
/// Operations run in the order of declaration, layer by layer.
///
/// Thread: engine.  Owns: page memory and activations; the model's file stays mapped by its Model.
/// Fails with kDeviceLost or kNoMemory; after a failure the step is void and KV of its rows is
/// undefined. Batch invariance: a row's results depend only on its sequence's tokens and positions,
/// bit for bit. They never depend on the other rows of the step or on the cut of a prompt into
/// steps. So reuse is exact:
///
///   KV-5  Reused KV and evaluating everything give the same: on one device, for the same token
///         ids, the logits agree bit for bit.
class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string kind() const = 0;  ///< "cpu", "cuda", "vulkan"
  virtual std::string name() const = 0;  ///< "Intel Xeon, AVX-512 VNNI, 2 threads"
  virtual int step_tokens_max() const = 0;
  virtual int page_count() const = 0;
  virtual std::size_t page_bytes() const = 0;      ///< K and V of kPageTokens tokens, all layers
  virtual std::size_t resident_bytes() const = 0;  ///< page memory in use so far

  /// x = embedding rows of the tokens, scaled. Keeps `step` (its spans must live until logits()).
  virtual Result<void> begin(const Step& step) = 0;
  /// The same with x [T][D] in place of embedding rows, if another device ran the layers before.
  virtual Result<void> begin_behind(const Step& step, std::span<const float> x) = 0;
  /// norm(x) -> q, k, v (+ bias), norms of heads, RoPE on q and k, k and v into their pages.
  virtual Result<void> attention_input(int layer) = 0;
  /// Causal attention of every row over its sequence's pages, or over the window's last tokens.
  virtual Result<void> attention(int layer) = 0;
  /// x += output projection of the attention (+ bias), scaled.
  virtual Result<void> attention_output(int layer) = 0;
  /// norm(x) -> activation(gate) * up, or activation(up); with experts, in those that the router
  /// chooses for each row.
  virtual Result<void> feed_forward_input(int layer) = 0;
  /// x += down projection (+ bias), scaled; with experts, the weighted sum of theirs.
  virtual Result<void> feed_forward_output(int layer) = 0;
  /// norm(x) of the wanted rows times the output matrix: [logits_rows.size()][V] f32, valid until
  /// begin().
  virtual Result<std::span<const float>> logits() = 0;

  /// x [T][D] after the last layer that was run, if another device runs what follows or the step
  /// stops there. Valid until the next step begins.
  virtual Result<std::span<const float>> residual() = 0;
  /// Whether a step may stop within any layer, which leave_off_at() then ends at once, and go on
  /// from that layer's begin, by begin_behind(), after others.
  virtual bool goes_on_behind_layers() const { return false; }
  /// Once `stop` fires, the operations that are left return at once, and what this layer gives is
  /// void. Null ends that.
  virtual void leave_off_at(const std::stop_token* /*stop*/) {}

  /// Copies the first `tokens` tokens of a page, all layers.
  virtual Result<void> copy_page(PageIndex from, PageIndex to, int tokens) = 0;

  /// Names element type, layout and arithmetic of a page's bytes. Only backends with the same name
  /// exchange pages, so a page that is read equals one that is evaluated (KV-5).
  virtual std::string page_format() const = 0;
  /// A page will be read soon: a device may begin to copy it beside other work. Forgotten when a
  /// step begins.
  virtual void expect_read(PageIndex /*page*/) {}
  /// A whole page, all layers, as page_bytes() bytes in the device's own layout.
  virtual Result<void> read_page(PageIndex page, std::span<std::byte> bytes) = 0;
  virtual Result<void> write_page(PageIndex page, std::span<const std::byte> bytes) = 0;
  /// Whether the device takes memory for a page when it is used first, and gives it back.
  virtual bool gives_pages_back() const { return false; }
  /// Gives the memory of a page back that nobody needs; it reads as zeros then. Only where
  /// gives_pages_back().
  virtual void give_page_back(PageIndex /*page*/) {}
  /// Overwrites what the last step left outside of pages, so that no KV stays behind there. Only in
  /// memory that the process can read; a GPU's own goes with the next step.
  virtual void overwrite_activations() {}
};

/// A layer's operations, in their order.
inline Result<void> run_layer(Backend& backend, int layer) {
  return backend.attention_input(layer)
      .and_then([&] { return backend.attention(layer); })
      .and_then([&] { return backend.attention_output(layer); })
      .and_then([&] { return backend.feed_forward_input(layer); })
      .and_then([&] { return backend.feed_forward_output(layer); });
}

/// Where a step was stopped: what it needs to go on, beside the KV of the layers before.
struct StoppedStep {
  int layer = 0;         ///< the next one; 0: nothing was evaluated
  std::vector<float> x;  ///< [T][D] before it
};

/// Evaluates one step through every layer, from `stopped` on if that is given. Returns the logits of step.logits_rows, [rows][V], valid
/// until the backend's next begin(); empty when none are wanted.
///
/// Thread: engine. Reads `stop` between layers, and within them on a device that can. Only idle work
/// passes one. Requests are stopped between steps, so that no evaluated row is lost. Even if every request is superseded, its prompt
/// advances by a step each time. Fails as the Backend does, and with kStopped; the step is then
/// void and the KV of its rows undefined. But if `stopped` is given and kStopped comes behind the
/// first layer, that is where the same step goes on, as long as nobody writes to its pages.
Result<std::span<const float>> forward(Backend& backend, int layers, const Step& step,
                                       const std::stop_token& stop = {},
                                       StoppedStep* stopped = nullptr);

/// Every device checks this before a step begins.

/// Whether rows, sequences and page tables fit each other and the device; for assertions.
bool well_formed(const Step& step, const Backend& backend);

/// kBadInput if a token is outside the vocabulary.
Result<void> check_tokens(const Step& step, int vocabulary);

}  // namespace efimd::engine
