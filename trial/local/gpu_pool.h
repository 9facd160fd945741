// Which GPUs there are, and which attempt has which. GpuPool is not thread-safe; its owner locks.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "google/protobuf/struct.pb.h"

namespace shirabe::trial {

// The devices that trials of this machine may be given: those of CUDA_VISIBLE_DEVICES where it is
// set, else what `nvidia-smi -L` lists within five seconds. None is fine.
std::vector<std::string> DetectDevices(Clock* clock);

// The devices in the output of `nvidia-smi -L`: indices, or the UUIDs of MIG slices if there are
// any, since then the whole devices cannot be given out.
std::vector<std::string> ParseDevices(const std::string& listing);

// The most nvidia.com/gpu that any one container of the object asks for: what an attempt would
// need here, where only the primary container runs. What is not a number yet counts as none.
int RequestedGpus(const google::protobuf::Struct& trial_spec);

class GpuPool {
 public:
  explicit GpuPool(std::vector<std::string> devices);

  // kInvalidArgument if there are not so many; kResourceExhausted if they are not free now.
  StatusOr<std::vector<std::string>> Allocate(int count);
  // An attempt found running has these. Names that are not of the pool are let be.
  void Mark(const std::vector<std::string>& devices);
  void Release(const std::vector<std::string>& devices);
  // Why Allocate(count) would fail now; "" if it would not.
  std::string Waiting(int count) const;

 private:
  int Free() const { return static_cast<int>(devices_.size() - busy_.size()); }

  std::vector<std::string> devices_;  // in the order of giving out, once each
  std::set<std::string> busy_;        // of devices_
};

}  // namespace shirabe::trial
