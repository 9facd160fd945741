#include "suggestion/gp/engine_choice.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/cancellation.h"
#include "suggestion/accelerator.h"
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

namespace {

using Eigen::Index;
using Eigen::Map;
using Eigen::MatrixXd;
using Eigen::VectorXd;

const double* DataOf(const MatrixXd& matrix) {
  return matrix.size() == 0 ? nullptr : matrix.data();
}

std::vector<double> ListOf(const VectorXd& values) { return {values.begin(), values.end()}; }

MatrixXd Stacked(const MatrixXd& above, const MatrixXd& below) {
  MatrixXd both(above.rows() + below.rows(), above.cols());
  both.topRows(above.rows()) = above;
  if (below.rows() > 0) both.bottomRows(below.rows()) = below;
  return both;
}

class RemoteModel : public Engine::Model {
 public:
  RemoteModel(const Inputs& points, const MatrixXd& values, Accelerator::Handle there)
      : inputs(points), y(values), handle(std::move(there)) {}
  const Inputs inputs;
  const MatrixXd y;
  const Accelerator::Handle handle;
};

// The points of a call go over in pieces that the accelerator takes.
class RemoteScorer : public Posterior::Scorer {
 public:
  RemoteScorer(std::shared_ptr<Accelerator> accelerator,  // shared: see the header
               Accelerator::Handle posterior, Index scenarios)
      : accelerator_(std::move(accelerator)),
        posterior_(std::move(posterior)),
        scenarios_(scenarios) {}

  bool Score(const Inputs& points, Slopes slopes, Posterior::Prediction& out) const override {
    const Index most = accelerator_->limits().most_scored, count = points.rows();
    const Index p = slopes == Slopes::kYes ? points.x.cols() : 0;
    out.mean.resize(count, scenarios_);
    out.variance.resize(count);
    out.mean_slopes.resize(count, p * scenarios_);
    out.variance_slope.resize(count, p);
    for (Index begin = 0; begin < count; begin += most) {
      const Inputs piece = points.Rows(begin, std::min(most, count - begin));
      if (!ScorePiece(piece, begin, slopes, out)) return false;
    }
    return true;
  }

 private:
  bool ScorePiece(const Inputs& piece, Index begin, Slopes slopes,
                  Posterior::Prediction& out) const {
    const StatusOr<Accelerator::Scores> scores =
        accelerator_->Score(*posterior_, {.count = piece.rows(),
                                          .p = piece.numeric(),
                                          .c = piece.categorical(),
                                          .m = static_cast<int>(scenarios_),
                                          .x = DataOf(piece.x),
                                          .u = DataOf(piece.u),
                                          .slopes = slopes == Slopes::kYes});
    if (!scores.ok()) return false;
    const Index count = piece.rows(), p = out.variance_slope.cols();
    out.mean.middleRows(begin, count) = Map<const MatrixXd>(scores->mean.data(), count, scenarios_);
    out.variance.segment(begin, count) = Map<const VectorXd>(scores->variance.data(), count);
    if (p == 0) return true;
    out.mean_slopes.middleRows(begin, count) =
        Map<const MatrixXd>(scores->mean_slopes.data(), count, p * scenarios_);
    out.variance_slope.middleRows(begin, count) =
        Map<const MatrixXd>(scores->variance_slope.data(), count, p);
    return true;
  }

  const std::shared_ptr<Accelerator> accelerator_;  // shared: see the header
  const Accelerator::Handle posterior_;
  const Index scenarios_;
};

class AcceleratedEngine : public Engine {
 public:
  explicit AcceleratedEngine(std::shared_ptr<Accelerator> accelerator)  // shared: see the header
      : accelerator_(std::move(accelerator)) {}

  EngineKind kind() const override { return EngineKind::kAccelerator; }
  Index most_fitted() const override { return accelerator_->limits().most_fitted; }

  StatusOr<std::unique_ptr<Model>> Upload(const Inputs& inputs, const MatrixXd& y) const override {
    ASSIGN_OR_RETURN(Accelerator::Handle handle,
                     accelerator_->Upload({.n = inputs.rows(),
                                           .p = inputs.numeric(),
                                           .c = inputs.categorical(),
                                           .m = static_cast<int>(y.cols()),
                                           .x = DataOf(inputs.x),
                                           .u = DataOf(inputs.u),
                                           .y = DataOf(y)}));
    return std::make_unique<RemoteModel>(inputs, y, std::move(handle));
  }

  StatusOr<std::vector<Fitted>> Fit(const Model& model,
                                    const std::vector<Start>& starts) const override {
    const auto& remote = static_cast<const RemoteModel&>(model);
    std::vector<Lbfgs> searches;
    for (const Start& start : starts) searches.push_back(BeginFit(remote.inputs, start.theta));
    std::vector<int> evaluations(starts.size(), 0);
    while (!IsCancelled()) {
      std::vector<size_t> active;
      for (size_t i = 0; i < searches.size(); ++i) {
        if (!searches[i].done()) active.push_back(i);
      }
      if (active.empty()) break;
      std::vector<Accelerator::Question> questions;
      for (const size_t i : active) {
        questions.push_back({remote.handle.get(), starts[i].column, ListOf(searches[i].next())});
      }
      ASSIGN_OR_RETURN(const auto answers, accelerator_->Evaluate(std::move(questions)));
      for (size_t k = 0; k < active.size(); ++k) {
        Tell(remote.inputs, answers[k], searches[active[k]]);
        ++evaluations[active[k]];
      }
    }
    std::vector<Fitted> fitted;
    for (size_t i = 0; i < searches.size(); ++i) {
      fitted.push_back({{searches[i].x()}, searches[i].value(), evaluations[i]});
    }
    return fitted;
  }

  StatusOr<Posterior> Condition(const Model& model, const Start& at) const override {
    const auto& remote = static_cast<const RemoteModel&>(model);
    const VectorXd y = remote.y.col(at.column);
    ASSIGN_OR_RETURN(
        Accelerator::Conditioned conditioned,
        accelerator_->Condition(*remote.handle,
                                {.theta = ListOf(at.theta.values), .y = ListOf(y), .m = 1}));
    const Index n = remote.inputs.rows();
    Posterior posterior(at.theta, remote.inputs,
                        Map<const MatrixXd>(conditioned.inverse.data(), n, n));
    posterior.SetTargets(y);
    posterior.SetScorer(std::make_shared<const RemoteScorer>(  // shared: by copies
        accelerator_, std::move(conditioned.posterior), 1));
    return posterior;
  }

  // β is that of what was observed. L⁻¹ comes back only where there is something new in it.
  Status Extend(Posterior& posterior, const Inputs& points, const MatrixXd& y) const override {
    const Inputs all{Stacked(posterior.inputs().x, points.x),
                     Stacked(posterior.inputs().u, points.u)};
    const MatrixXd targets = Stacked(posterior.targets(), y);
    const double mean = posterior.mean();
    const Index n = all.rows(), scenarios = targets.cols();
    const Theta& theta = posterior.theta();
    ASSIGN_OR_RETURN(const std::unique_ptr<Model> model, Upload(all, targets));
    ASSIGN_OR_RETURN(
        Accelerator::Conditioned conditioned,
        accelerator_->Condition(*static_cast<const RemoteModel&>(*model).handle,
                                {.theta = ListOf(theta.values),
                                 .y = {targets.data(), targets.data() + targets.size()},
                                 .m = static_cast<int>(scenarios),
                                 .mean = &mean,
                                 .wants_inverse = points.rows() > 0}));
    if (points.rows() > 0) {
      posterior = Posterior(theta, all, Map<const MatrixXd>(conditioned.inverse.data(), n, n));
      posterior.SetTargets(targets, mean);
    }
    posterior.SetScorer(std::make_shared<const RemoteScorer>(  // shared: by copies
        accelerator_, std::move(conditioned.posterior), scenarios));
    return absl::OkStatus();
  }

 private:
  // The accelerator leaves the prior of θ out.
  static void Tell(const Inputs& inputs, const Accelerator::Answer& answer, Lbfgs& search) {
    VectorXd gradient =
        Map<const VectorXd>(answer.gradient.data(), static_cast<Index>(answer.gradient.size()));
    double value = answer.value;
    if (std::isfinite(value)) {
      value += NegativeLogPrior({search.next()}, inputs.numeric(), inputs.categorical(), gradient);
    }
    search.Tell(value, gradient);
  }

  const std::shared_ptr<Accelerator> accelerator_;  // shared: see the header
};

}  // namespace

std::unique_ptr<Engine> MakeAcceleratedEngine(
    std::shared_ptr<Accelerator> accelerator) {  // shared: see the header
  return std::make_unique<AcceleratedEngine>(std::move(accelerator));
}

}  // namespace shirabe::suggestion::gp
