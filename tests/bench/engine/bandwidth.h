#pragma once

namespace efimd::bench {

/// How memory is read.
struct Reading {
  int threads;
  int streams;      ///< of a thread, side by side
  int ahead_bytes;  ///< of a software prefetch; 0: none
  bool huge_pages;  ///< 2 MiB, as far as the system gives them
};

/// GB/s that adding up 512 MiB reaches; the best of some runs, for others on the machine only lower it.
double read_bandwidth(const Reading& reading);

/// The best of the readings that kernels could do: what a step's GB/s are held against.
double best_read_bandwidth(int threads);

/// Prints the table of bandwidth by threads, streams, prefetch and page size.
void print_bandwidth();

}  // namespace efimd::bench
