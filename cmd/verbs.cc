#include "cmd/verb.h"

namespace shirabe::cmd {

const std::vector<Verb>& Verbs() {
  static const std::vector<Verb> verbs = {
      {"run", "-f FILE | --param … -- COMMAND", "run an experiment here and show its best trial",
       RunExperiment},
      {"serve", "", "run the experiments of a store, for many users", Serve},
      {"controller", "--advertise HOST:PORT", "the same in a Kubernetes cluster", Controller},
      {"crds", "[RESOURCE]", "print the custom resource definitions of a cluster", Crds},
      {"apply", "-f FILE", "hand an experiment to a server, or change its counts", Apply},
      {"create", "-f FILE", "hand a new experiment to a server", Create},
      {"diff", "-f FILE", "show what apply would change", Diff},
      {"edit", "EXPERIMENT", "change its counts and goal in an editor", Edit},
      {"rehearse", "-f FILE", "take machines away from one trial: is the program safe?", Rehearse},
      {"validate", "-f FILE", "check a file: every mistake with its line and column", Validate},
      {"get", "exp|trials|attempts|checkpoints|metrics [NAME]", "list records", Get},
      {"describe", "exp|trial NAME", "say all about one, and why", Describe},
      {"best", "EXPERIMENT", "the best trial, as a table, JSON or arguments", Best},
      {"logs", "TRIAL", "print the log of a trial", Logs},
      {"events", "EXPERIMENT", "list what happened", Events},
      {"export", "EXPERIMENT", "all trials as CSV or JSON lines", Export},
      {"compare", "A B", "trials or experiments side by side", Compare},
      {"wait", "EXPERIMENT|TRIAL --for CONDITION", "until it has ended, or is as good as that",
       Wait},
      {"suggest", "EXPERIMENT --dry-run", "show the points that would be tried next", Suggest},
      {"ask", "EXPERIMENT", "the next trial, for a caller who runs it", Ask},
      {"report", "TRIAL METRIC=VALUE…", "values of a trial that goes on", ReportMetrics},
      {"tell", "TRIAL METRIC=VALUE…", "the result of a trial that was asked for", Tell},
      {"scale", "EXPERIMENT", "change how many trials, and how many at once", Scale},
      {"pause", "EXPERIMENT", "start no new trials; running ones go on", Pause},
      {"resume", "EXPERIMENT", "go on after a pause", Resume},
      {"stop", "EXPERIMENT", "end it: running trials save and stop", Stop},
      {"cancel", "EXPERIMENT", "end it at once", Cancel},
      {"retry", "TRIAL", "try the point of a trial again", Retry},
      {"delete", "EXPERIMENT", "end it, and remove its records and files", Delete},
      {"top", "", "what runs now, and what it takes", Top},
      {"doctor", "", "is everything there that the others need?", Doctor},
      {"import", "optuna|katib|csv FILE", "results of other tools as ended experiments", Import},
      {"config", "get-contexts|use-context|…", "the servers that you use, by name", Config},
      {"algorithms", "[NAME]", "list the algorithms and early-stopping rules, or explain one",
       Algorithms},
      {"explain", "algorithm|stopper NAME", "say when to use it, and what its settings are",
       Explain},
      {"completion", "bash|zsh|fish", "print the script that completes commands", Completion},
      {"version", "", "print the version", Version},
  };
  return verbs;
}

const Verb* FindVerb(const std::string& name) {
  // Called by the completion scripts, and by containers of ours, not by people.
  static constexpr Verb kComplete = {"__complete", "", "", Complete};
  if (name == kComplete.name) return &kComplete;
  static constexpr Verb kPod = {"pod", "init|sidecar|stop", "", Pod};
  if (name == kPod.name) return &kPod;
  for (const Verb& verb : Verbs()) {
    if (name == verb.name) return &verb;
  }
  return nullptr;
}

std::vector<std::string> VerbNames() {
  std::vector<std::string> names;
  for (const Verb& verb : Verbs()) names.push_back(verb.name);
  return names;
}

}  // namespace shirabe::cmd
