// What an administrator says of GPUs for the algorithms, by two variables of the environment of the
// program. Nothing of an experiment, a request or a file is asked. Pure but for reading the
// environment; any thread.
//
//   SHIRABE_GPU=auto|off|N         auto: the best one there is; N: the N-th, from 0. Without it
//                                  auto for a server (serve, controller), and off for what runs
//                                  trials here for one user: they may be training on that GPU
//   SHIRABE_GPU_LIBRARY_DIR=DIR    where libshirabe-cuda.so is, and nowhere else; an absolute path
#pragma once

#include <string>

#include "base/status.h"

namespace shirabe::suggestion::accelerator {

struct GpuSetting {
  bool said = false;  // SHIRABE_GPU is set
  bool off = false;
  int ordinal = -1;    // -1: the best one
  std::string folder;  // "": where the program is installed
};

// kInvalidArgument, naming the variable, its value and the fix. Null: not set.
StatusOr<GpuSetting> ParseGpuSetting(const char* gpu, const char* folder);

// Of this process.
StatusOr<GpuSetting> ReadGpuSetting();

}  // namespace shirabe::suggestion::accelerator
