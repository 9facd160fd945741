// What becomes of a trial of several pods in a cluster, before there is one: whether its object is
// refused there, and what it must do without. The same code says so that makes the object.
#include <string>

#include "base/text/json_fields.h"
#include "experiment/spec/field_rules.h"
#include "experiment/spec/objective_value.h"
#include "experiment/spec/validate_rules.h"
#include "trial/pod/pod_build.h"

namespace shirabe::experiment {
namespace {

constexpr char kPodsField[] = "spec.trialTemplate.trialSpec";

trial::AttemptRequest SampleRequest(const v1::ExperimentSpec& spec) {
  trial::AttemptRequest request;
  request.key = {{{"default", "experiment"}, 1}, 1};
  request.trial_spec = spec.trial_template().trial_spec();
  request.primary_container = spec.trial_template().primary_container_name();
  request.cluster.trial_template = spec.trial_template();
  request.cluster.trial_template.clear_trial_spec();
  request.cluster.collector = spec.metrics_collector_spec();
  request.cluster.metrics = WantedMetrics(spec.objective());
  request.cluster.code = spec.shirabe().code();
  return request;
}

int64_t PodsOf(const v1::ExperimentSpec& spec) {
  int64_t pods = 0;
  const Json object = FromStruct(spec.trial_template().trial_spec());
  for (const trial::SamplePod& sample : trial::SamplePods(object)) pods += sample.count;
  return pods;
}

}  // namespace

void CheckPods(const v1::ExperimentSpec& spec, Findings& findings) {
  if (findings.errors() > 0 || !spec.trial_template().has_trial_spec()) return;
  if (PodsOf(spec) < 2 && !spec.shirabe().has_code()) return;
  const auto built = trial::BuildAttemptObject(SampleRequest(spec), {}, {});
  if (!built.ok())
    return findings.Warn(kPodsField, "is refused in a cluster: " + Message(built.status()));
  const std::string& why = built->without_checkpoints.empty() ? built->uninstrumented_reason
                                                              : built->without_checkpoints;
  if (why.empty()) return;
  findings.Warn(kPodsField,
                "checkpoints are not committed in a cluster, where a lost attempt begins again "
                "from 0: " +
                    why);
}

}  // namespace shirabe::experiment
