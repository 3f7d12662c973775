// As in kernels/sizes.h.
struct RowLayout {
  uint row_words, high_at, scale_at, super_at;
};
