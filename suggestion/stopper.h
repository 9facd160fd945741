// An early-stopping rule: whether a running trial should end now. One file each under stoppers/,
// registered by its last line, built once per experiment from validated settings. Asked by the
// reconciler after new reports of a trial, away from its own thread.
//
// Pure: no clock, no I/O, no state that changes an answer. The same history and curves give the
// same answer, after a restart and on another machine, whenever it is asked. One call at a time per
// object, from any thread.
//
// Settings that mean the same have the same name in every rule, Katib's where Katib has it:
// start_step (reports, not steps: what a trial may report before it can be stopped) and
// min_trials_required (others to compare with).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/registry.h"
#include "suggestion/algorithm.h"
#include "suggestion/curves.h"
#include "suggestion/history.h"

namespace shirabe::suggestion {

class Stopper {
 public:
  virtual ~Stopper() = default;
  // A reason for people ("at step 40 best 0.61 > median 0.48 of 12 trials") if trial `index`,
  // which is active, should stop. Trials may have no curve, `index` too: then nothing is known.
  virtual StatusOr<std::optional<std::string>> ShouldStop(int64_t index, const History& history,
                                                          const Curves& curves) = 0;
};

// What a rule is built from.
struct StopProblem {
  Settings settings = {};
  bool maximize = false;  // the metric is -loss: for thresholds, and for the words of a reason
};

struct StopperInfo {
  std::string name;  // Katib's, where Katib has it
  std::vector<std::string> aliases = {};
  std::string help;  // one sentence: what it is, when to use it
  std::vector<SettingInfo> settings = {};
  // kInvalidArgument, naming the setting and the fix; the settings have passed the table, and
  // those not given have their defaults.
  StatusOr<std::unique_ptr<Stopper>> (*create)(const StopProblem& problem);
};

// As ValidateSettings of algorithm.h, without random_state: rules draw nothing.
Status ValidateStopperSettings(const std::vector<SettingInfo>& known, const Settings& settings);

// By name or alias, after ValidateStopperSettings; settings that are not given get their defaults.
// kNotFound, with the known names, if there is none.
StatusOr<std::unique_ptr<Stopper>> CreateStopper(const std::string& name,
                                                 const StopProblem& problem);

// ---- for the rules -----------------------------------------------------------------------------

// A number that passed the table; nullopt where it has no default and was not given.
std::optional<double> NumberSetting(const Settings& settings, const std::string& name);
// One that has a default.
int64_t IntSetting(const Settings& settings, const std::string& name);

// Losses in the words of a reason: the metric's own values.
struct Sense {
  bool maximize = false;
  std::string Show(double loss) const;
  const char* Worse() const { return maximize ? "<" : ">"; }
};

// The settings of rules that compare with other trials. `trials` is the default.
SettingInfo MinTrialsRequired(const std::string& trials);
SettingInfo StartStep(const std::string& reports);

}  // namespace shirabe::suggestion
