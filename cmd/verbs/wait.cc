// wait: until something is so, for scripts.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/registry.h"
#include "cmd/options.h"
#include "cmd/session.h"
#include "cmd/terminal.h"
#include "cmd/verb.h"
#include "cmd/verb_flags.h"
#include "cmd/verbs/get_nouns.h"
#include "view/wait_condition.h"

namespace shirabe::cmd {
namespace {

using view::AwaitCondition;
using view::AwaitResult;

struct Waiting {
  AwaitCondition condition;
  absl::Duration timeout;
  absl::Duration deadline;
};

// Its experiment, or the trial.
StatusOr<view::AwaitTarget> FindTarget(const Session& session, const std::string& name) {
  ASSIGN_OR_RETURN(const auto trial, TrialUnlessExperiment(session, name));
  if (trial) return view::AwaitTarget{trial->experiment, trial};
  ASSIGN_OR_RETURN(const ExperimentKey key, ExperimentArgument(name, session.ns));
  return view::AwaitTarget{key, std::nullopt};
}

StatusOr<int> WaitForOne(const Session& session, const std::string& name, const Waiting& waiting) {
  const AwaitCondition& condition = waiting.condition;
  ASSIGN_OR_RETURN(const auto target, FindTarget(session, name));
  const auto waited = view::Await(*session.client, target, waiting.condition, waiting.deadline);
  RETURN_IF_ERROR(AsUsage(waited.status()));
  const std::string object =
      target.trial ? "trial/" + TrialName(*target.trial) : "experiment/" + target.experiment.name;
  if (waited->awaited == AwaitResult::kMet) {
    Out(object + " " + condition.text + "\n");
    return kOk;
  }
  if (waited->awaited == AwaitResult::kNever) {
    ProgressLine(object + " has ended (" + waited->state + "): it will never be " + condition.text);
    return kNoSuccess;
  }
  ProgressLine(absl::StrCat(object, " is ", waited->state, " after ",
                            absl::FormatDuration(waiting.timeout), ", not yet ", condition.text));
  return kTimedOut;
}

}  // namespace

StatusOr<int> Wait(const Arguments& arguments) {
  Globals globals;
  std::vector<std::string> names;
  std::string condition;
  std::string timeout;
  Options options(
      "wait EXPERIMENT|TRIAL… --for CONDITION [--timeout 10m]",
      "Waits until something is so: succeeded, failed, completed (ended in whatever way), running "
      "(or has run), deleted, 'metric=loss<0.1' or 'best<0.1'. Exits with 0 once it is, 8 if it "
      "can no longer be since the experiment or trial has ended, 124 after the time-out. A server "
      "that goes away is waited for, too, for a minute.");
  options.Arguments("EXPERIMENT or TRIAL", &names, 1, 1000);
  options.Text("--for", &condition, "CONDITION", "what to wait for (default completed)");
  options.Text("--timeout", &timeout, "TIME", "at most so long: 30s, 10m, 2h (default: no end)");
  AddGlobals(options, &globals);
  ASSIGN_OR_RETURN(const bool done, ParseAll(options, globals, arguments));
  if (done) return 0;
  auto parsed = view::ParseAwaitCondition(condition.empty() ? "completed" : condition);
  RETURN_IF_ERROR(AsUsage(parsed.status()));
  ASSIGN_OR_RETURN(const absl::Duration most,
                   ParseDurationOr("--timeout", timeout, absl::InfiniteDuration()));
  const Waiting waiting{*std::move(parsed), most, RealClock()->Monotonic() + most};
  globals.retry_period = std::min(globals.retry_period, most);
  if (names.size() > 1 && (names[0] == "exp" || names[0] == "trial")) names.erase(names.begin());
  ASSIGN_OR_RETURN(const Session session, OpenSession(globals, /*read_only=*/true));
  for (const std::string& name : names) {
    ASSIGN_OR_RETURN(const int code, WaitForOne(session, name, waiting));
    if (code != kOk) return code;
  }
  return kOk;
}

SHIRABE_REGISTER(Verb, {.name = "wait",
                        .group = VerbGroup::kRead,
                        .summary = "wait until one has ended, or is as good as that",
                        .completes = CompleteExperiments,
                        .run = Wait});

}  // namespace shirabe::cmd
