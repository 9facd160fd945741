// Says in plain words what an illegal instruction would not. Compiled for plain x86-64 and run
// before every other initialiser, since any of those may already use the newer instructions.
#include <unistd.h>

namespace {

#if defined(__x86_64__)
__attribute__((constructor(101))) void CheckProcessor() {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("bmi2")) {
    return;
  }
  constexpr char kText[] =
      "shirabe: this processor lacks AVX2, FMA or BMI2 (x86-64-v3), which release builds use.\n"
      "Build from source with `cmake --preset debug -DSHIRABE_ARCH=-march=x86-64`.\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kText, sizeof kText - 1);
  _exit(1);
}
#endif

}  // namespace
