// What a thread has worked, so that a test can say that something costs little on a busy machine
// too.
#pragma once

#include <time.h>

namespace shirabe::suggestion {

// Processor time of this thread.
inline double CpuSeconds() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace shirabe::suggestion
