// Where this checkout and its build lie, for tests that read files or start programs of theirs.
#pragma once

#include <string>

namespace shirabe {

// Without a slash at the end.
std::string SourceDir();
std::string BinaryDir();

}  // namespace shirabe
