// The places of K and V, as kernels::Kv in kernels/sizes.h says. The form is a specialization
// constant, so that the pipeline lacks the code of the other form. Words of one token's K or V of a
// head of `width` elements.
layout(constant_id = 0) const uint kForm = 0;
const uint kF16 = 0, kQ8 = 1;

uint quant_words_of(uint width) { return (width + 3) / 4; }
uint scale_words_of(uint width) { return ((width + 31) / 32 + 1) / 2; }
uint token_words_of(uint width) { return kForm == kQ8 ? quant_words_of(width) + scale_words_of(width) : width / 2; }
