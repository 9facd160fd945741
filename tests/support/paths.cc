#include "tests/support/paths.h"

// The only source that is told paths when it is compiled: any other would miss in the compiler's
// cache of another checkout.
namespace shirabe {

std::string SourceDir() { return SOURCE_DIR; }
std::string BinaryDir() { return BINARY_DIR; }

}  // namespace shirabe
