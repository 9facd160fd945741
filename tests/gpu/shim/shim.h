// What tests set and read of the device that the processor plays.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>

namespace shirabe::suggestion::gpu {

using Place = std::pair<std::string, int>;  // file and line

struct Shim {
  uint64_t seed = 0;           // of the order of threads and blocks; 0: as they are numbered
  Place removed;               // a barrier that is passed as if it were not there
  int64_t memory = 1LL << 32;  // of the device, bytes
  int64_t launches_until_lost = -1;
  bool old_driver = false, no_driver = false;

  // What was seen.
  std::set<Place> barriers;
  std::string fault;  // of a kernel: threads that wait at different barriers; the device is lost
  int64_t used = 0;   // bytes
  int64_t launches = 0, reserved = 0;
};

Shim& TheShim();
// As it was at first, but for the memory that is in use.
void ResetShim();

}  // namespace shirabe::suggestion::gpu
