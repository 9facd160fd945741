#include "base/memory.h"

#include <malloc.h>

namespace shirabe {

void KeepFreedMemory() {
  constexpr int kKept = 64 << 20;
  mallopt(M_TRIM_THRESHOLD, kKept);
  mallopt(M_MMAP_THRESHOLD, kKept / 2);  // the most that glibc accepts is 32 MiB
}

}  // namespace shirabe
