// The analyses of suggestion/analyses.h: each fits the model, and looks at its functions.
#include "suggestion/analyses.h"
#include "suggestion/analysis/fitted_history.h"
#include "suggestion/analysis/importance.h"
#include "suggestion/analysis/partial_dependence.h"

namespace shirabe::suggestion {
namespace {

constexpr int kDrawsShown = 64;

OfModel<std::vector<ParameterImportance>> ImportancesOf(const History& history) {
  const analysis::FittedHistory fitted(history);
  if (!fitted.has_model()) return {fitted.basis()};
  return {fitted.basis(), analysis::Importances(fitted)};
}

OfModel<AblationPath> AblationOf(const History& history, const Point& from, const Point& to) {
  const analysis::FittedHistory fitted(history);
  if (!fitted.has_model()) return {fitted.basis()};
  const analysis::PosteriorFunctions drawn = fitted.Draw(kDrawsShown);
  const auto losses = [&](const gp::Inputs& points) { return drawn.Losses(points); };
  return {fitted.basis(), analysis::Ablate(fitted.layout(), losses, from, to)};
}

OfModel<PartialDependence> DependenceOf(const History& history, const std::vector<int>& axes) {
  const analysis::FittedHistory fitted(history);
  if (!fitted.has_model()) return {fitted.basis()};
  const analysis::PosteriorFunctions drawn = fitted.Draw(kDrawsShown);
  const auto losses = [&](const gp::Inputs& points) { return drawn.Losses(points); };
  return {fitted.basis(),
          analysis::PartialDependenceOf(fitted.layout(), losses, axes, drawn.cost())};
}

}  // namespace

const Analyses kAnalyses = {ImportancesOf, AblationOf, DependenceOf};

}  // namespace shirabe::suggestion
