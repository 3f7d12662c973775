#pragma once

#include <cstddef>

// The tests' orders to the stand-in for NVIDIA's driver; found in its library by name. State is the
// library's: a test begins with a reset.
extern "C" {

void fake_cuda_reset();
/// From the call after `calls_before` more on, `function` answers `result` (a CUresult); errors other than want of
/// memory stick: every later call answers them, as a driver does.
void fake_cuda_fail(const char* function, int result, int calls_before);
void fake_cuda_set_driver_version(int version);
void fake_cuda_set_memory(std::size_t bytes);
/// One more card, with so much memory. All share the first one's blocks.
void fake_cuda_add_card(std::size_t bytes);
/// Who holds the context of a card.
int fake_cuda_contexts_held(int card);
/// Of the device, and what its code was compiled for; 80 is 8.0, which is what a reset sets.
void fake_cuda_set_capability(int capability, int of_code);
/// Threads between barriers run last first.
void fake_cuda_run_backward();
int fake_cuda_graphs_made();

}  // extern "C"
