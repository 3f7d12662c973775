// The kernels that nvcc built, as bytes of the program. The driver, if there is one, loads them.
asm(".section .rodata\n"
    ".balign 64\n"
    ".global efimd_cuda_module\n"
    ".type efimd_cuda_module, @object\n"
    "efimd_cuda_module:\n"
    ".incbin \"" EFIMD_CUDA_MODULE
    "\"\n"
    ".size efimd_cuda_module, . - efimd_cuda_module\n"
    ".previous\n");
