#version 450
// The experts of each row: those with the largest logits, the lower index first among equals. Their
// weights are the softmax over these logits.
//   logits [T][experts]   chosen, weights [T][used], likeliest first
//   grid (T / 64), a thread for each row
layout(local_size_x = 64) in;
layout(std430, binding = 0) readonly buffer Logits { float logits[]; };
layout(std430, binding = 1) buffer Chosen { uint chosen[]; };
layout(std430, binding = 2) buffer Weights { float weights[]; };
layout(push_constant) uniform Sizes { uint rows, experts, used; } s;

void main() {
  const uint row = gl_GlobalInvocationID.x;
  if (row >= s.rows) return;
  float last = 1.0 / 0.0, first = 0, sum = 0;
  uint last_expert = 0;
  for (uint rank = 0; rank < s.used; ++rank) {
    float best = -1.0 / 0.0;
    uint expert = 0;
    for (uint e = 0; e < s.experts; ++e) {
      const float logit = logits[row * s.experts + e];
      const bool open = rank == 0 || logit < last || (logit == last && e > last_expert);
      if (open && logit > best) {
        best = logit;
        expert = e;
      }
    }
    if (rank == 0) first = best;
    last = best;
    last_expert = expert;
    chosen[row * s.used + rank] = expert;
    weights[row * s.used + rank] = exp(best - first);
    sum += exp(best - first);
  }
  for (uint rank = 0; rank < s.used; ++rank) weights[row * s.used + rank] /= sum;
}
