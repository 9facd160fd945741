// The program's own main: started again by a test, with the variable set, it is a controller that
// can be killed.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/integration/controller_child.h"

int main(int argc, char** argv) {
  if (const char* home = std::getenv(shirabe::experiment::kChildVariable)) {
    return shirabe::experiment::RunController(home);
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
