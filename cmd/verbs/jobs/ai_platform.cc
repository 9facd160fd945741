// ai-platform: jobs in the grammar of `gcloud ai-platform`, over experiments; kubectl-ai_platform
// is this verb under another name (cmd/main.cc).
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/printable.h"
#include "base/registry.h"
#include "base/timestamp.h"
#include "client/state_location.h"
#include "cmd/record_printer.h"
#include "cmd/session.h"
#include "cmd/terminal.h"
#include "cmd/verb.h"
#include "cmd/verbs/jobs/job_flags.h"
#include "cmd/verbs/jobs/job_records.h"
#include "cmd/verbs/jobs/submit_job.h"
#include "experiment/conditions.h"

namespace shirabe::cmd {
namespace {

ListFlags TreeFlags(const JobFlags& flags) {
  return {.output = flags.format == "text" ? "yaml" : flags.format};
}

StatusOr<int> ListJobs(const JobFlags& flags, const std::string&) {
  ASSIGN_OR_RETURN(const Session session, OpenSession(flags.globals, /*read_only=*/true));
  ASSIGN_OR_RETURN(auto experiments, session.client->ListExperiments(session.ns));
  if (flags.limit && static_cast<int64_t>(experiments.size()) > *flags.limit) {
    experiments.resize(*flags.limit);
  }
  if (flags.format != "text") {
    std::vector<view::Json> trees;
    for (const v1::Experiment& experiment : experiments) trees.push_back(JobJson(experiment, {}));
    PrintTrees(TreeFlags(flags), trees);
    return kOk;
  }
  if (experiments.empty()) ProgressLine("Listed 0 items.");
  view::Table table({"JOB_ID", "STATUS", "CREATED"});
  for (const v1::Experiment& experiment : experiments) {
    table.Add({experiment.metadata().name(), JobState(experiment),
               FormatTime(experiment.metadata().creation_timestamp())});
  }
  Out(table.Render(/*headers=*/true));
  return kOk;
}

StatusOr<int> DescribeJob(const JobFlags& flags, const std::string& name) {
  ASSIGN_OR_RETURN(const Session session, OpenSession(flags.globals, /*read_only=*/true));
  ASSIGN_OR_RETURN(const ExperimentKey key, JobKey(name, session.ns));
  ASSIGN_OR_RETURN(const v1::Experiment experiment, session.client->GetExperiment(key));
  std::vector<v1::Trial> trials;
  if (!flags.summarize) {
    ASSIGN_OR_RETURN(trials, session.client->ListTrials({.experiment = key}));
  }
  PrintTree(TreeFlags(flags), JobJson(experiment, std::move(trials)));
  return kOk;
}

// What has ended has nothing left to cancel.
StatusOr<int> CancelJob(const JobFlags& flags, const std::string& name) {
  ASSIGN_OR_RETURN(const Session session, OpenSession(flags.globals, /*read_only=*/false));
  ASSIGN_OR_RETURN(const ExperimentKey key, JobKey(name, session.ns));
  ASSIGN_OR_RETURN(const v1::Experiment experiment, session.client->GetExperiment(key));
  if (experiment::IsEnded(experiment)) {
    ProgressLine("Job [" + key.name + "] has ended already: " + JobState(experiment));
    return kOk;
  }
  v1::Intent intent;
  intent.set_verb(v1::Intent::CANCEL);
  RETURN_IF_ERROR(session.client->Send(key, intent));
  ProgressLine("Job [" + key.name + "] is being cancelled");
  return kOk;
}

struct JobVerb {
  std::vector<std::string> words;
  bool named;  // the name of a job follows
  StatusOr<int> (*run)(const JobFlags& flags, const std::string& name);
};

const std::vector<JobVerb>& JobVerbs() {
  static const std::vector<JobVerb> verbs = {{{"jobs", "submit", "training"}, true, SubmitJob},
                                             {{"jobs", "list"}, false, ListJobs},
                                             {{"jobs", "describe"}, true, DescribeJob},
                                             {{"jobs", "stream-logs"}, true, StreamJobLogs},
                                             {{"jobs", "cancel"}, true, CancelJob},
                                             {{"jobs", "get"}, false, ListJobs}};
  return verbs;
}

bool BeginsWith(const Arguments& words, const std::vector<std::string>& begin) {
  return words.size() >= begin.size() && std::equal(begin.begin(), begin.end(), words.begin());
}

bool IsForSubmit(const JobFlags& flags) {
  return !flags.config.empty() || !flags.package_path.empty() || !flags.fields.empty() ||
         !flags.labels.empty() || !flags.user_args.empty() || !flags.collector.empty() ||
         flags.stream_logs || flags.async;
}

StatusOr<int> RunJobVerb(const JobVerb& verb, const JobFlags& flags) {
  const Arguments rest(flags.words.begin() + verb.words.size(), flags.words.end());
  const std::string called = absl::StrJoin(verb.words, " ");
  if (verb.run != SubmitJob && IsForSubmit(flags)) {
    return UsageError(called + ": flags of a job belong to jobs submit training");
  }
  if (verb.named && rest.empty()) return UsageError(called + ": the name of the job is missing");
  if (rest.size() > (verb.named ? 1u : 0u)) {
    // jobs get NAME is as good as describe.
    if (verb.words[1] == "get" && rest.size() == 1) return DescribeJob(flags, rest[0]);
    return UsageError(called + ": unexpected argument " + Quoted(rest[verb.named ? 1 : 0]) +
                      " (arguments of the program follow --)");
  }
  return verb.run(flags, verb.named ? rest[0] : "");
}

// As a plugin it goes to the cluster; who names a store for all verbs means that one.
void UseNamedStore(JobFlags& flags) {
  const client::Environment environment = client::ProcessEnvironment();
  const Globals& globals = flags.globals;
  const bool named = !globals.db.empty() || !globals.server.empty() || !globals.context.empty() ||
                     !environment("SHIRABE_SERVER").value_or("").empty();
  if (!named) flags.globals.db = environment("SHIRABE_DB").value_or("");
}

StatusOr<int> RunJobs(const Arguments& arguments) {
  JobFlags flags;
  ASSIGN_OR_RETURN(const bool done, ParseJobFlags(arguments, &flags));
  if (done) return kOk;
  UseNamedStore(flags);
  for (const JobVerb& verb : JobVerbs()) {
    if (BeginsWith(flags.words, verb.words)) return RunJobVerb(verb, flags);
  }
  return UsageError(absl::StrCat(Quoted(absl::StrJoin(flags.words, " ")),
                                 " is none of jobs submit training NAME, jobs list, jobs describe "
                                 "NAME, jobs stream-logs NAME and jobs cancel NAME"));
}

std::vector<std::string> CompleteJobWords(const Arguments& words) {
  if (words.size() <= 2) return {"jobs"};
  if (words.size() == 3) return {"submit", "list", "describe", "stream-logs", "cancel", "get"};
  if (words[2] == "submit") {
    return words.size() == 4 ? std::vector<std::string>{"training"} : std::vector<std::string>();
  }
  if (words.size() != 4) return {};
  // The store of the environment, if the plugin would go to it (UseNamedStore).
  Arguments placed = words;
  const std::string db = client::ProcessEnvironment()("SHIRABE_DB").value_or("");
  if (!db.empty()) placed.insert(placed.begin(), {"--db", db});
  return CompleteExperiments(placed);
}

}  // namespace

// gcloud's codes: 1 for everything but a wrong call.
StatusOr<int> AiPlatform(const Arguments& arguments) {
  const StatusOr<int> outcome = RunJobs(arguments);
  if (outcome.ok() || IsUsage(outcome.status())) return outcome;
  PrintError(outcome.status());
  return kFailure;
}

SHIRABE_REGISTER(Verb, {.name = "ai-platform",
                        .group = VerbGroup::kSubmit,
                        .summary = "jobs in the way of gcloud ai-platform",
                        .completes = CompleteJobWords,
                        .outputs = {},
                        .run = AiPlatform});

}  // namespace shirabe::cmd
