#include "experiment/spec/algorithm_setup.h"

#include <utility>

#include "experiment/spec/trial_result.h"
#include "suggestion/remote/remote_algorithm.h"
#include "suggestion/remote/remote_algorithm_table.h"

namespace shirabe::experiment {
namespace {

class NotAllowed : public suggestion::Algorithm {
 public:
  explicit NotAllowed(Status why) : why_(std::move(why)) {}
  StatusOr<suggestion::Proposal> Propose(const suggestion::History&, int, const Rng&) override {
    return Prefix("spec.shirabe.algorithm.endpoint", why_);
  }

 private:
  Status why_;
};

// Settings are the service's own, and so is what becomes of the space.
bool HasEndpoint(const v1::ExperimentSpec& spec) {
  const auto endpoint = suggestion::RemoteEndpoint(spec);
  return !endpoint.ok() || !endpoint->empty();
}

}  // namespace

suggestion::Settings SettingsOf(const google::protobuf::RepeatedPtrField<v1::Setting>& from) {
  suggestion::Settings settings;
  for (const v1::Setting& setting : from) settings.emplace_back(setting.name(), setting.value());
  return settings;
}

StatusOr<suggestion::Problem> ProblemOf(const v1::ExperimentSpec& spec) {
  ASSIGN_OR_RETURN(suggestion::Space space, suggestion::Space::Create(spec));
  return MakeProblem(spec, std::move(space));
}

suggestion::Problem MakeProblem(const v1::ExperimentSpec& spec, suggestion::Space space) {
  return {.space = std::move(space),
          .settings = SettingsOf(spec.algorithm().algorithm_settings()),
          .max_trials = spec.max_trial_count(),
          .parallel = spec.parallel_trial_count(),
          .maximize = spec.objective().type() == v1::MAXIMIZE,
          .objectives = 1 + spec.shirabe().additional_objectives_size(),
          .constraints = CountBounds(spec)};
}

StatusOr<AlgorithmSetup> MakeAlgorithm(const v1::Experiment& experiment) {
  const v1::ExperimentSpec& spec = experiment.spec();
  ASSIGN_OR_RETURN(suggestion::Space space, SearchSpaceOf(spec));
  const auto endpoint = suggestion::RemoteEndpoint(spec);
  if (!endpoint.ok()) {
    return AlgorithmSetup{std::make_unique<NotAllowed>(endpoint.status()), std::move(space)};
  }
  if (!endpoint->empty()) {
    auto remote = suggestion::MakeRemoteAlgorithm(
        experiment, space,
        {.endpoint = *endpoint, .deadline = suggestion::GetRemoteAlgorithms().deadline});
    return AlgorithmSetup{std::move(remote), std::move(space), *endpoint};
  }
  ASSIGN_OR_RETURN(const suggestion::Problem problem, ProblemOf(spec));
  ASSIGN_OR_RETURN(auto algorithm,
                   suggestion::CreateAlgorithm(spec.algorithm().algorithm_name(), problem));
  return AlgorithmSetup{std::move(algorithm), std::move(space)};
}

StatusOr<suggestion::Space> SearchSpaceOf(const v1::ExperimentSpec& spec) {
  if (HasEndpoint(spec)) return suggestion::Space::Create(spec);
  ASSIGN_OR_RETURN(const suggestion::Problem problem, ProblemOf(spec));
  return suggestion::SearchSpace(spec.algorithm().algorithm_name(), problem);
}

}  // namespace shirabe::experiment
