#include "suggestion/gp/engine_choice.h"

#include <utility>

#include "suggestion/accelerator.h"
#include "suggestion/gp/accelerated_engine.h"

namespace shirabe::suggestion::gp {

bool AcceleratorPays(const LearnSize& size) {
  const AcceleratorThresholds thresholds = CurrentThresholds();
  return size.points >= (size.fits > 1 ? thresholds.points : thresholds.alone);
}

std::unique_ptr<Engine> FindAcceleratedEngine(const LearnSize& size) {
  if (!AcceleratorPays(size)) return nullptr;
  auto accelerator = FindAccelerator(size.points, size.coordinates);
  if (accelerator == nullptr) return nullptr;
  return MakeAcceleratedEngine(std::move(accelerator));
}

}  // namespace shirabe::suggestion::gp
