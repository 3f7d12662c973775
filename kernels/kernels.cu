// All kernels as one CUDA module (a "fat binary"), which engine/backend/cuda holds and gives to the driver.
#include "kernels/entries.cuh"
