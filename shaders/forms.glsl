// A result that products read, in the forms that kernels::Forms in kernels/sizes.h says. The file
// that includes this declares the buffers `result_floats`, `result_quants` and `result_scales`, and
// the push constants `s` with `floats` and `quants`.
shared float form_largest[gl_WorkGroupSize.x];
shared int form_sums[gl_WorkGroupSize.x];

// Writes elements at .. at + 3, this thread's; at % 4 == 0. All threads of the workgroup call it.
// Neighbours have neighbouring fours, and the first thread has the beginning of a group; `inside`:
// how many of the four there are.
void write_form(uint at, vec4 values, uint inside) {
  if (s.floats != 0)
    for (uint i = 0; i < inside; ++i) result_floats[at + i] = values[i];
  if (s.quants == 0) return;
  // Eight threads have a group, and all of it.
  const uint lane = gl_LocalInvocationID.x, first = lane / 8 * 8;
  const vec4 sizes = abs(values);
  form_largest[lane] = max(max(sizes.x, sizes.y), max(sizes.z, sizes.w));
  barrier();
  float largest = form_largest[first];
  for (uint i = 1; i < 8; ++i) largest = max(largest, form_largest[first + i]);
  const bool zero = largest < 1e-30;
  const float inverse = zero ? 0 : 127 / largest;
  const ivec4 levels = ivec4(clamp(roundEven(values * inverse), -127, 127));
  form_sums[lane] = levels.x + levels.y + levels.z + levels.w;
  barrier();
  if (inside == 0) return;
  const uvec4 bytes = uvec4(levels) & 0xFFu;
  result_quants[at / 4] = bytes.x | bytes.y << 8 | bytes.z << 16 | bytes.w << 24;
  if (lane != first) return;
  int sum = 0;
  for (uint i = 0; i < 8; ++i) sum += form_sums[first + i];
  const float scale = zero ? 0 : largest / 127;
  result_scales[at / 32] = vec2(scale, float(sum) * scale);
}
