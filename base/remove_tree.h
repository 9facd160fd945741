// rm -r of what a program has made: however deep it is nested, however many entries it has, and
// whatever modes its folders were given. No symbolic link is followed, and at most some sixty
// descriptors are open. Thread-safe: no state; of two that remove the same, both succeed.
#pragma once

#include <string>

#include "base/status.h"

namespace shirabe {

// Nothing there is fine. Used by RemoveAll (base/file.h).
Status RemoveTree(const std::string& path);

}  // namespace shirabe
