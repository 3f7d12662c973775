#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tests/support/model_writer.h"

namespace efimd::test {

/// A model that both engines evaluate: an architecture with one way of scaling RoPE.
struct PeerVariety {
  std::string_view name;  ///< "llama-yarn"
  std::string_view architecture;
  TinyModel::RopeScaling rope_scaling = TinyModel::RopeScaling::kNone;
  bool tied = false;
  bool all_biases = false;
  /// What spoilt() changes: without it the comparison would not notice that it was left out.
  std::string_view spoilt_by;
};

const std::vector<PeerVariety>& peer_varieties();
const PeerVariety* find_peer_variety(std::string_view name);

/// F32; rows that all weight types can have, biases as large as the products, and logits whose
/// distributions are far from flat.
TinyModel peer_model(const PeerVariety& variety);
/// The same weights, with the variety's own feature left out or changed a little.
GgufWriter spoilt(const PeerVariety& variety, TinyModel model);

}  // namespace efimd::test
