// A controller in a process of its own, so that tests can kill it.
#pragma once

#include <string>

namespace shirabe::experiment {

inline constexpr char kChildVariable[] = "SHIRABE_TEST_CONTROLLER_HOME";

// Owns the experiment default/killed of the store in `home` until it has ended; the exit code.
int RunController(const std::string& home);

}  // namespace shirabe::experiment
