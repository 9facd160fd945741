// The supervisor program, which travels inside this one. Thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace shirabe::trial {

// The program's bytes (trial/local/supervisor_blob.cc); they live as long as the process.
std::string_view SupervisorProgram();

// Puts the program under `home`/bin, named by its digest, and returns its path. One that is there
// already is used again, and put right if its bytes differ.
StatusOr<std::string> UnpackSupervisor(const std::string& home);

}  // namespace shirabe::trial
