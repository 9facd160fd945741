#include "suggestion/gp/engine.h"

#include <utility>

namespace shirabe::suggestion::gp {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;

class HostModel : public Engine::Model {
 public:
  HostModel(const Inputs& points, const MatrixXd& values) : inputs(points), y(values) {}
  const Inputs inputs;
  const MatrixXd y;
};

class ThisProcessor : public Engine {
 public:
  EngineKind kind() const override { return EngineKind::kProcessor; }
  Index most_fitted() const override { return 400; }

  StatusOr<std::unique_ptr<Model>> Upload(const Inputs& inputs, const MatrixXd& y) const override {
    return std::make_unique<HostModel>(inputs, y);
  }

  StatusOr<std::vector<Fitted>> Fit(const Model& model,
                                    const std::vector<Start>& starts) const override {
    const auto& [inputs, y] = Of(model);
    std::vector<Fitted> fitted;
    for (const Start& start : starts) {
      fitted.push_back(gp::Fit(inputs, y.col(start.column), start.theta));
    }
    return fitted;
  }

  StatusOr<Posterior> Condition(const Model& model, const Start& at) const override {
    const auto& [inputs, y] = Of(model);
    Posterior posterior(at.theta, inputs);
    posterior.SetTargets(y.col(at.column));
    return posterior;
  }

  Status Extend(Posterior& posterior, const Inputs& points, const MatrixXd& y) const override {
    for (Index i = 0; i < points.rows(); ++i) posterior.Append(points.Row(i), y.row(i));
    return absl::OkStatus();
  }

 private:
  static std::pair<const Inputs&, const MatrixXd&> Of(const Model& model) {
    const auto& host = static_cast<const HostModel&>(model);
    return {host.inputs, host.y};
  }
};

}  // namespace

const Engine& ProcessorEngine() {
  static const ThisProcessor engine;
  return engine;
}

}  // namespace shirabe::suggestion::gp
