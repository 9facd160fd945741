// How this process deals with the memory that it frees. Not thread-safe: call it first.
#pragma once

#include <malloc.h>

namespace shirabe {

// Keeps up to 64 MiB of freed memory for the next use instead of giving it back to the kernel at
// once. Matrices of a megabyte come and go a hundred times in one suggestion, and to fault their
// pages in again each time takes as long as the arithmetic.
inline void KeepFreedMemory() {
  constexpr int kKept = 64 << 20;
  mallopt(M_TRIM_THRESHOLD, kKept);
  mallopt(M_MMAP_THRESHOLD, kKept / 2);  // the most that glibc accepts is 32 MiB
}

}  // namespace shirabe
