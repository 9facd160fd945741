// Where the program under test lies, for all that includes cli.h.
#include <cstdlib>

#include "tests/integration/cli.h"
#include "tests/support/paths.h"

namespace shirabe::cmd {

std::string Program() {
  const char* other = std::getenv("SHIRABE_TEST_BINARY");
  return other != nullptr ? other : BinaryDir() + "/bin/shirabe";
}

std::vector<std::string> Launcher() {
  if (std::getenv("SHIRABE_TEST_NO_OPENAT2") == nullptr) return {};
  return {BinaryDir() + "/bin/without_openat2"};
}

}  // namespace shirabe::cmd
