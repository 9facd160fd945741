#include "suggestion/gp/engine_choice.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "suggestion/accelerator.h"
#include "suggestion/gp/accelerated_engine.h"
#include "suggestion/gp/scored_results.h"

namespace shirabe::suggestion::gp {
namespace {

constexpr int kFits = static_cast<int>(std::size(kWarpKinds));  // of an objective

}  // namespace

bool AcceleratorPays(const LearnSize& size) {
  const AcceleratorThresholds thresholds = CurrentThresholds();
  return size.points >= (size.fits > 1 ? thresholds.points : thresholds.alone);
}

std::unique_ptr<Engine> DecidedEngine(const PastEngine& past, const LearnSize& size) {
  const LearnSize before{static_cast<Eigen::Index>(past.fitted_at), size.coordinates, size.fits};
  const bool stays = past.kind == EngineKind::kProcessor && past.fitted_at > 0;
  if (stays && AcceleratorPays(before)) return nullptr;
  return FindAcceleratedEngine(size);
}

int64_t MostResults(const PastEngine& past, int64_t trials, int coordinates) {
  if (trials <= Results::kMaxPoints) return Results::kMaxPoints;
  const int64_t points = std::min(trials, Results::kMaxAccelerated);
  const auto engine = DecidedEngine(past, {static_cast<Eigen::Index>(points), coordinates, kFits});
  return engine == nullptr ? Results::kMaxPoints : Results::kMaxAccelerated;
}

std::unique_ptr<Engine> FindAcceleratedEngine(const LearnSize& size) {
  if (!AcceleratorPays(size)) return nullptr;
  auto accelerator = FindAccelerator(size.points, size.coordinates);
  if (accelerator == nullptr) return nullptr;
  return MakeAcceleratedEngine(std::move(accelerator));
}

void Extend(EngineKind kind, Posterior& posterior, const Inputs& points, const Eigen::MatrixXd& y) {
  if (kind == EngineKind::kAccelerator) {
    const Inputs& inputs = posterior.inputs();
    const std::unique_ptr<Engine> engine =
        FindAcceleratedEngine({.points = inputs.rows() + points.rows(),
                               .coordinates = inputs.numeric() + inputs.categorical(),
                               .fits = kFits});
    if (engine != nullptr && engine->Extend(posterior, points, y).ok()) return;
  }
  CHECK(ProcessorEngine().Extend(posterior, points, y).ok());
}

void ScoreBy(EngineKind kind, Posterior& posterior) {
  if (kind == EngineKind::kProcessor || posterior.has_scorer()) return;
  const Inputs& inputs = posterior.inputs();
  const Inputs none = inputs.Rows(0, 0);
  Extend(kind, posterior, none, Eigen::MatrixXd(0, posterior.scenarios()));
}

}  // namespace shirabe::suggestion::gp
