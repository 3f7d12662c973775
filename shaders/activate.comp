#version 450
// gate = activation(gate) (* up) * scale, element by element.
//   gate, up [count] f32   grid (count / 64)
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer Gate { float gate[]; };
layout(std430, binding = 1) readonly buffer Up { float up[]; };
layout(push_constant) uniform Sizes {
  uint count, gated, gelu;
  float scale;
} s;

void main() {
  const uint i = gl_GlobalInvocationID.x;
  if (i >= s.count) return;
  const float x = gate[i];
  // 1.59576912 is 2 sqrt(2 / pi).
  const float slope = s.gelu != 0 ? 1.59576912 * (x + 0.044715 * x * x * x) : x;
  const float activated = x / (1 + exp(-slope));
  gate[i] = (s.gated != 0 ? activated * up[i] : activated) * s.scale;
}
