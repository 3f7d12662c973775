#pragma once

#include <string>
#include <string_view>

#include "engine/model/model.h"

namespace efimd::engine {

/// Whether the files of an architecture have something.
enum class Presence { kNone, kOptional, kRequired };

/// How a family of decoders differs from the others. The engine knows nothing else of it than its
/// line in architecture.cpp's table. The reader turns it, with the file's keys, into a ModelShape;
/// no other part asks for a name.
struct Architecture {
  std::string_view name;  ///< `general.architecture` and the prefix of the file's keys
  RopePairs rope_pairs = RopePairs::kHalves;
  Norm norm = Norm::kRms;
  Activation activation = Activation::kSilu;
  bool gated = true;                             ///< act(gate) * up, not act(up)
  Presence projection_biases = Presence::kNone;  ///< of Q, K and V
  Presence other_biases = Presence::kNone;       ///< of attention output, gate, up and down
  Presence head_norms = Presence::kNone;         ///< RMS norm of each head of Q and K
  bool rope_factors = false;                     ///< may bring rope_freqs.weight
  bool embedding_times_root_width = false;       ///< the embedding is multiplied by sqrt(D)
  bool multipliers = false;                      ///< granite's four scales stand in its keys
  bool sliding_window = false;                   ///< may name attention.sliding_window
  bool experts = false;
};

/// The architecture of that name; null when this build does not run it.
const Architecture* find_architecture(std::string_view name);
/// "llama, qwen2, ... and granite".
std::string supported_architectures();
/// Why no build can run models of that name, if it is known ("has a recurrent state that cannot be
/// rewound ..."); else empty.
std::string_view reason_against(std::string_view name);

/// The recognized form, for people: "qwen3moe: RMS norm, SiLU gate, norms of heads, 128 experts of
/// which 8 are used".
std::string describe(const ModelShape& shape, const ModelWeights& weights);

}  // namespace efimd::engine
