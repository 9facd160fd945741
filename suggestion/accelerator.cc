#include "suggestion/accelerator.h"

#include <atomic>
#include <utility>

#include "base/registry.h"

namespace shirabe::suggestion {
namespace {

std::atomic<const AcceleratorOverride*> replaced{nullptr};

bool Takes(const Accelerator& accelerator, int64_t points, int coordinates) {
  const Accelerator::Limits limits = accelerator.limits();
  return !accelerator.lost() && points <= limits.most_points &&
         coordinates <= limits.most_coordinates;
}

}  // namespace

AcceleratorThresholds CurrentThresholds() {
  const AcceleratorOverride* const other = replaced;
  return other == nullptr ? AcceleratorThresholds() : other->thresholds_;
}

AcceleratorPointer FindAccelerator(int64_t points, int coordinates) {
  AcceleratorPointer found;
  if (const AcceleratorOverride* const other = replaced) {
    found = other->used_;
  } else {
    const auto& kinds = Registry<AcceleratorInfo>::Get();
    for (const std::string& name : kinds.Names()) {
      if (found == nullptr) found = kinds.Find(name)->find();
    }
  }
  if (found == nullptr || !Takes(*found, points, coordinates)) return nullptr;
  return found;
}

AcceleratorOverride::AcceleratorOverride(AcceleratorPointer used, AcceleratorThresholds thresholds)
    : used_(std::move(used)), thresholds_(thresholds) {
  CHECK(replaced.exchange(this) == nullptr);
}

AcceleratorOverride::~AcceleratorOverride() { replaced = nullptr; }

}  // namespace shirabe::suggestion
