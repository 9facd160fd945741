// Rules of what is optimised beside spec.objective, and of what results must keep.
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/printable.h"
#include "base/text/number.h"
#include "experiment/spec/field_rules.h"
#include "experiment/spec/trial_result.h"
#include "experiment/spec/validate_rules.h"

namespace shirabe::experiment {
namespace {

constexpr char kObjectives[] = "spec.shirabe.additionalObjectives";
constexpr char kConstraints[] = "spec.shirabe.constraints";

void CheckAdditional(const v1::ExperimentSpec& spec, Findings& findings) {
  std::set<std::string> seen = {spec.objective().objective_metric_name()};
  for (int i = 0; i < spec.shirabe().additional_objectives_size() && !findings.full(); ++i) {
    const std::string& name = spec.shirabe().additional_objectives(i).metric_name();
    if (name.empty() || seen.insert(name).second) continue;  // the table has said the first
    findings.Error(ItemPath(kObjectives, i) + ".metricName",
                   Quoted(name) + " is an objective already: remove one");
  }
}

void CheckConstraints(const v1::ExperimentSpec& spec, Findings& findings) {
  std::set<std::string> seen;
  for (int i = 0; i < spec.shirabe().constraints_size() && !findings.full(); ++i) {
    const v1::ResultConstraint& constraint = spec.shirabe().constraints(i);
    const std::string path = ItemPath(kConstraints, i), &name = constraint.metric_name();
    if (!name.empty() && !seen.insert(name).second) {
      findings.Error(path + ".metricName",
                     Quoted(name) + " has a constraint already: give min and max in one");
    }
    if (constraint.stop_early() && !CanBreakForGood(spec, constraint)) {
      findings.Error(path + ".stopEarly",
                     absl::StrCat("a value of ", Quoted(name), " can still come back: give it a ",
                                  "strategy of ", constraint.has_min() ? "min" : "max",
                                  " in objective.metricStrategies, or leave this out"));
    }
    if (!constraint.has_min() && !constraint.has_max()) {
      if (findings.IsUnreadable(path + ".min") || findings.IsUnreadable(path + ".max")) continue;
      findings.Error(path, "give min, max or both: the values that keep it");
    } else if (constraint.has_min() && constraint.has_max() &&
               constraint.min() > constraint.max()) {
      findings.Error(path,
                     absl::StrCat("min ", FormatNumber(constraint.min()), " is greater than max ",
                                  FormatNumber(constraint.max()), ": swap them"));
    }
  }
}

// What knows one number of a trial alone.
void CheckWhoCannot(const v1::ExperimentSpec& spec, Findings& findings) {
  const bool several = HasSeveralObjectives(spec);
  const v1::ShirabeSpec& shirabe = spec.shirabe();
  if (several && shirabe.has_warm_start()) {
    findings.Error("spec.shirabe.warmStart",
                   "earlier results have one objective: leave it out, or give their points as "
                   "spec.shirabe.start");
  }
  if (HasFurtherMetrics(spec) && shirabe.has_algorithm()) {
    findings.Error("spec.shirabe.algorithm",
                   "a remote algorithm is told of one objective and of no constraints: use one of "
                   "`shirabe algorithms`");
  }
  const bool ruled = suggestion::SpaceRules::AreIn(shirabe.space()) || shirabe.space().has_priors();
  if (ruled && shirabe.has_algorithm()) {
    findings.Error("spec.shirabe.algorithm",
                   "a remote algorithm is told nothing of spec.shirabe.space, for which Katib's "
                   "interface has no words: use one of `shirabe algorithms`");
  }
  if (several && shirabe.stop_when().has_min_improvement()) {
    findings.Error("spec.shirabe.stopWhen.minImprovement",
                   "is of one objective; with several an improvement is a trial that comes onto "
                   "the front: leave it out");
  }
  if (!several && shirabe.has_objective_reference()) {
    findings.Error("spec.shirabe.objectiveReference",
                   "is where the hypervolume of several objectives is measured from: leave it "
                   "out, or give additionalObjectives");
  }
}

}  // namespace

void CheckResults(const v1::ExperimentSpec& spec, Findings& findings) {
  CheckAdditional(spec, findings);
  CheckConstraints(spec, findings);
  CheckWhoCannot(spec, findings);
}

}  // namespace shirabe::experiment
