// The program's own main: started again by a test, with a variable set, it is a controller that can
// be killed, or that dies by itself.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/integration/controller_child.h"
#include "tests/integration/small_experiment.h"

int main(int argc, char** argv) {
  if (const char* home = std::getenv(shirabe::experiment::kChildVariable)) {
    return shirabe::experiment::RunController(home);
  }
  if (const char* home = std::getenv(shirabe::experiment::kCrashHome)) {
    return shirabe::experiment::RunCrashChild(home);
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
