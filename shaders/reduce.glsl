// Sums and maxima of REDUCED (float, or a vector of them) over all threads of the workgroup, for
// every thread. The order depends on the device alone. With subgroup operations, a subgroup is one
// step, of one size in all pipelines of a shader (engine/backend/vulkan/subgroups.h). No relation
// between threads and subgroups is assumed.
#ifndef REDUCED
#define REDUCED float
#endif
shared REDUCED partial[gl_WorkGroupSize.x];

#ifdef SUBGROUPS
uint parts_of(REDUCED value) {
  if (subgroupElect()) partial[gl_SubgroupID] = value;
  barrier();
  return gl_NumSubgroups;
}
REDUCED sum_threads(REDUCED value) {
  barrier();  // nobody reads the last reduction's parts any more
  const uint parts = parts_of(subgroupAdd(value));
  REDUCED sum = REDUCED(0);
  for (uint i = 0; i < parts; ++i) sum += partial[i];
  return sum;
}
REDUCED max_threads(REDUCED value) {
  barrier();
  const uint parts = parts_of(subgroupMax(value));
  REDUCED most = partial[0];
  for (uint i = 1; i < parts; ++i) most = max(most, partial[i]);
  return most;
}
#else
REDUCED sum_threads(REDUCED value) {
  const uint at = gl_LocalInvocationID.x;
  barrier();
  partial[at] = value;
  for (uint half_way = gl_WorkGroupSize.x / 2; half_way > 0; half_way /= 2) {
    barrier();
    if (at < half_way) partial[at] += partial[at + half_way];
  }
  barrier();
  return partial[0];
}
REDUCED max_threads(REDUCED value) {
  const uint at = gl_LocalInvocationID.x;
  barrier();
  partial[at] = value;
  for (uint half_way = gl_WorkGroupSize.x / 2; half_way > 0; half_way /= 2) {
    barrier();
    if (at < half_way) partial[at] = max(partial[at], partial[at + half_way]);
  }
  barrier();
  return partial[0];
}
#endif
