// scale, pause, resume, stop, cancel, retry: requests to the owner of the experiment, which acts on
// them within a second, or when it is run again.

#include "base/registry.h"
#include "cmd/session.h"
#include "cmd/terminal.h"
#include "cmd/verb.h"
#include "experiment/conditions.h"
#include "experiment/submission.h"

namespace shirabe::cmd {
namespace {

Status Deliver(const Session& session, const ExperimentKey& key, const v1::Intent& intent) {
  RETURN_IF_ERROR(session.client->Send(key, intent));
  ASSIGN_OR_RETURN(const std::string holder, session.client->Holder(key));
  const std::string& name = key.name;
  Hint(holder.empty() ? "accepted: no process runs " + name + " now; it takes effect once one does"
                      : "noted: " + holder + " runs " + name + " and acts on it within a second");
  return absl::OkStatus();
}

// Doing it twice is as good as once: what has ended already has nothing left to be asked for.
bool IsDone(const v1::Experiment& experiment, v1::Intent::Verb verb) {
  const bool ended = experiment::IsEnded(experiment);
  return ended && (verb == v1::Intent::STOP || verb == v1::Intent::CANCEL);
}

Status Send(const Globals& globals, const std::string& name, const v1::Intent& intent) {
  ASSIGN_OR_RETURN(const Session session, OpenSession(globals, /*read_only=*/false));
  ASSIGN_OR_RETURN(const ExperimentKey key, ExperimentArgument(name, session.ns));
  ASSIGN_OR_RETURN(const v1::Experiment experiment, session.client->GetExperiment(key));
  if (!IsDone(experiment, intent.verb())) return Deliver(session, key, intent);
  Hint(name + " has ended already");
  return absl::OkStatus();
}

// A verb that only names an experiment.
StatusOr<int> SendVerb(const Arguments& arguments, v1::Intent::Verb verb, const std::string& usage,
                       const std::string& about) {
  Globals globals;
  std::vector<std::string> names;
  Options options(usage, about);
  options.Arguments("EXPERIMENT", &names, 1, 1);
  AddGlobals(options, &globals);
  ASSIGN_OR_RETURN(const bool done, ParseAll(options, globals, arguments));
  if (done) return 0;
  v1::Intent intent;
  intent.set_verb(verb);
  RETURN_IF_ERROR(Send(globals, names[0], intent));
  return 0;
}

}  // namespace

StatusOr<int> Pause(const Arguments& arguments) {
  return SendVerb(arguments, v1::Intent::PAUSE, "pause EXPERIMENT",
                  "Starts no new trials; running ones go on. shirabe resume undoes it.");
}

StatusOr<int> Resume(const Arguments& arguments) {
  return SendVerb(arguments, v1::Intent::RESUME, "resume EXPERIMENT", "Goes on after a pause.");
}

StatusOr<int> Stop(const Arguments& arguments) {
  return SendVerb(arguments, v1::Intent::STOP, "stop EXPERIMENT",
                  "Ends an experiment: running trials may save, then stop. Final.");
}

StatusOr<int> Cancel(const Arguments& arguments) {
  return SendVerb(arguments, v1::Intent::CANCEL, "cancel EXPERIMENT",
                  "Ends an experiment and its trials at once. Final.");
}

StatusOr<int> Retry(const Arguments& arguments) {
  Globals globals;
  std::vector<std::string> names;
  Options options("retry TRIAL…",
                  "Tries the points of trials that have ended again, each as a new trial. Of an "
                  "experiment that has ended nothing is tried again (exit code 4).");
  options.Arguments("TRIAL", &names, 1, 1000);
  AddGlobals(options, &globals);
  ASSIGN_OR_RETURN(const bool done, ParseAll(options, globals, arguments));
  if (done) return 0;
  ASSIGN_OR_RETURN(const Session session, OpenSession(globals, /*read_only=*/false));
  for (const std::string& name : names) {
    ASSIGN_OR_RETURN(const TrialKey key, TrialArgument(name, session.ns));
    v1::Intent intent;
    intent.set_verb(v1::Intent::RETRY);
    intent.set_trial(key.number);
    RETURN_IF_ERROR(Deliver(session, key.experiment, intent));
  }
  return 0;
}

StatusOr<int> Scale(const Arguments& arguments) {
  Globals globals;
  std::vector<std::string> names;
  std::optional<int64_t> parallel, trials, failed;
  Options options("scale EXPERIMENT [--parallel N] [--max-trials N] [--max-failed N]",
                  "Changes the counts of an experiment, also while it runs.");
  options.Arguments("EXPERIMENT", &names, 1, 1);
  options.Count("--parallel", &parallel, 1, "trials at the same time");
  options.Count("--max-trials", &trials, 1,
                "trials after which it has succeeded; no more of them at the same time");
  options.Count("--max-failed", &failed, 0, "failed trials after which it has failed");
  AddGlobals(options, &globals);
  ASSIGN_OR_RETURN(const bool done, ParseAll(options, globals, arguments));
  if (done) return 0;
  if (!parallel && !trials && !failed) {
    return UsageError("give at least one of --parallel, --max-trials and --max-failed");
  }
  v1::Intent intent;
  intent.set_verb(v1::Intent::SCALE);
  if (parallel) intent.set_parallel_trial_count(static_cast<int32_t>(*parallel));
  if (trials) intent.set_max_trial_count(static_cast<int32_t>(*trials));
  if (failed) intent.set_max_failed_trial_count(static_cast<int32_t>(*failed));
  RETURN_IF_ERROR(Send(globals, names[0], intent));
  return 0;
}

SHIRABE_REGISTER(Verb, {.name = "scale",
                        .group = VerbGroup::kSubmit,
                        .summary = "change how many trials, and how many at once",
                        .completes = CompleteExperiments,
                        .run = Scale});

SHIRABE_REGISTER(Verb, {.name = "pause",
                        .group = VerbGroup::kSubmit,
                        .summary = "start no new trials; running ones go on",
                        .completes = CompleteExperiments,
                        .run = Pause});

SHIRABE_REGISTER(Verb, {.name = "resume",
                        .group = VerbGroup::kSubmit,
                        .summary = "go on after a pause",
                        .completes = CompleteExperiments,
                        .run = Resume});

SHIRABE_REGISTER(Verb, {.name = "stop",
                        .group = VerbGroup::kSubmit,
                        .summary = "end an experiment: running trials save and stop",
                        .completes = CompleteExperiments,
                        .run = Stop});

SHIRABE_REGISTER(Verb, {.name = "cancel",
                        .group = VerbGroup::kSubmit,
                        .summary = "end an experiment at once",
                        .completes = CompleteExperiments,
                        .run = Cancel});

SHIRABE_REGISTER(Verb, {.name = "retry",
                        .group = VerbGroup::kSubmit,
                        .summary = "try the point of a trial again",
                        .completes = CompleteTrials,
                        .run = Retry});

}  // namespace shirabe::cmd
