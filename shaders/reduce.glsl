// Sums and maxima over all threads of the workgroup, for every thread. The order depends on the device alone. Where
// there are subgroup operations a subgroup is one step, and no relation between threads and subgroups is assumed.
shared float partial[gl_WorkGroupSize.x];

#ifdef SUBGROUPS
uint parts_of(float value) {
  if (subgroupElect()) partial[gl_SubgroupID] = value;
  barrier();
  return gl_NumSubgroups;
}
float sum_threads(float value) {
  barrier();  // nobody reads the last reduction's parts any more
  const uint parts = parts_of(subgroupAdd(value));
  float sum = 0;
  for (uint i = 0; i < parts; ++i) sum += partial[i];
  return sum;
}
float max_threads(float value) {
  barrier();
  const uint parts = parts_of(subgroupMax(value));
  float most = partial[0];
  for (uint i = 1; i < parts; ++i) most = max(most, partial[i]);
  return most;
}
#else
float sum_threads(float value) {
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
float max_threads(float value) {
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
