#include "experiment/problem.h"

#include <utility>

namespace shirabe::experiment {

suggestion::Settings SettingsOf(const google::protobuf::RepeatedPtrField<v1::Setting>& from) {
  suggestion::Settings settings;
  for (const v1::Setting& setting : from) settings.emplace_back(setting.name(), setting.value());
  return settings;
}

StatusOr<suggestion::Problem> ProblemOf(const v1::ExperimentSpec& spec) {
  ASSIGN_OR_RETURN(suggestion::Space space, suggestion::Space::Create(spec.parameters()));
  return suggestion::Problem{std::move(space), SettingsOf(spec.algorithm().algorithm_settings()),
                             spec.max_trial_count(), spec.parallel_trial_count(),
                             spec.objective().type() == v1::MAXIMIZE};
}

StatusOr<suggestion::Space> SearchSpaceOf(const v1::ExperimentSpec& spec) {
  ASSIGN_OR_RETURN(const suggestion::Problem problem, ProblemOf(spec));
  return suggestion::SearchSpace(spec.algorithm().algorithm_name(), problem);
}

}  // namespace shirabe::experiment
