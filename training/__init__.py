"""Training for EFIM: from source code to a GGUF file (README.md)."""
