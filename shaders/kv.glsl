// Where K and V lie, as kernels::Kv in kernels/sizes.h has it: a specialization constant, so that what the other form
// would need is gone when the pipeline is made. Words of one token's K or V of a head of `width` elements.
layout(constant_id = 0) const uint kForm = 0;
const uint kF16 = 0, kQ8 = 1;

uint quant_words_of(uint width) { return (width + 3) / 4; }
uint scale_words_of(uint width) { return ((width + 31) / 32 + 1) / 2; }
uint token_words_of(uint width) { return kForm == kQ8 ? quant_words_of(width) + scale_words_of(width) : width / 2; }
