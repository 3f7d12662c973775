#version 450
// Joins the splits of attention, in their order.
//   records [T][H][splits][2 + E]   rows [T] (position, ...)   attended [T][H][E], times scale
//   grid (T, H), threads 32
layout(local_size_x = 32) in;
layout(std430, binding = 0) readonly buffer Records { float records[]; };
layout(std430, binding = 1) readonly buffer Rows { uvec2 rows[]; };
layout(std430, binding = 2) writeonly buffer Out { float attended[]; };
layout(push_constant) uniform Sizes {
  uint heads, head_width, split_pages, splits;
  float scale;
} s;

void main() {
  const uint row = gl_WorkGroupID.x * s.heads + gl_WorkGroupID.y;
  const uint width = 2 + s.head_width;
  const uint begin = row * s.splits * width;
  const uint count = rows[gl_WorkGroupID.x].x / 32 / s.split_pages + 1;
  float most = records[begin];
  for (uint i = 1; i < count; ++i) most = max(most, records[begin + i * width]);
  float sum = 0;
  for (uint i = 0; i < count; ++i)
    sum += records[begin + i * width + 1] * exp(records[begin + i * width] - most);
  for (uint e = gl_LocalInvocationID.x; e < s.head_width; e += 32) {
    float value = 0;
    for (uint i = 0; i < count; ++i)
      value += records[begin + i * width + 2 + e] * exp(records[begin + i * width] - most);
    attended[row * s.head_width + e] = value / sum * s.scale;
  }
}
