// get: finds what is to be listed. get_*.cc list it.
#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "base/registry.h"
#include "base/text/did_you_mean.h"
#include "cmd/record_printer.h"
#include "cmd/session.h"
#include "cmd/verb.h"
#include "cmd/verb_flags.h"
#include "cmd/verbs/get_nouns.h"
#include "experiment/conditions.h"
#include "view/record_filter.h"
#include "view/schedule_text.h"
#include "view/spending.h"

namespace shirabe::cmd {

namespace {

struct Noun {
  const char* name;
  StatusOr<int> (*get)(const Session& session, const GetRequest& request);
};

constexpr Noun kNouns[] = {
    {"experiments", GetExperiments},
    {"experiment", GetExperiments},
    {"exp", GetExperiments},
    {"trials", GetTrials},
    {"trial", GetTrials},
    {"attempts", GetAttempts},
    {"attempt", GetAttempts},
    {"checkpoints", GetCheckpoints},
    {"checkpoint", GetCheckpoints},
    {"metrics", GetMetrics},
    {"schedules", GetSchedules},
    {"schedule", GetSchedules},
};

StatusOr<const Noun*> FindNoun(const std::string& word) {
  std::vector<std::string> names;
  for (const Noun& noun : kNouns) {
    if (word == noun.name) return &noun;
    names.push_back(noun.name);
  }
  const auto nearest = Nearest(word, names);
  return UsageError("there is no \"" + word + "\" to get" +
                    (nearest ? "; did you mean \"" + *nearest + "\"?"
                             : ": it is exp, trials, attempts, checkpoints, metrics or schedules"));
}

// get exp/digits is get exp digits.
void SplitNoun(std::vector<std::string>& words) {
  const size_t cut = words[0].find('/');
  if (cut == std::string::npos) return;
  words.insert(words.begin() + 1, words[0].substr(cut + 1));
  words[0].resize(cut);
}

}  // namespace

StatusOr<std::optional<TrialKey>> TrialUnlessExperiment(const Session& session,
                                                        const std::string& text) {
  if (absl::StartsWith(text, "trial/")) {
    ASSIGN_OR_RETURN(const TrialKey key, TrialArgument(text, session.ns));
    return std::optional<TrialKey>(key);
  }
  const auto trial = ParseTrialName(text, session.ns);
  if (!trial || text.find('/') != std::string::npos) return trial;
  const Status found = session.client->GetExperiment({session.ns, text}).status();
  if (found.ok()) return std::optional<TrialKey>();
  if (!absl::IsNotFound(found)) return found;
  return trial;
}

namespace {

std::vector<std::string> CompleteGetWords(const Arguments& words) {
  if (words.size() == 2) return {"exp", "trials", "attempts", "checkpoints", "metrics"};
  const std::string& noun = words[words.size() - 2];
  return noun == "metrics" || noun == "checkpoints" ? CompleteTrials(words)
                                                    : CompleteExperiments(words);
}

}  // namespace

StatusOr<int> Get(const Arguments& arguments) {
  Globals globals;
  GetRequest request;
  Options options("get exp|trials|attempts|checkpoints|metrics [NAME]",
                  "Lists experiments, the trials of one, the attempts of a trial or experiment, or "
                  "the checkpoints or metrics of a trial.");
  options.Arguments("what to get", &request.names, 1, 100);
  AddListing(options, &request.flags);
  options.Flag("--all-attempts", &request.all_attempts,
               "metrics: also values that a later attempt has run again");
  AddGlobals(options, &globals);
  ASSIGN_OR_RETURN(const bool done, ParseAll(options, globals, arguments));
  if (done) return 0;
  SplitNoun(request.names);
  ASSIGN_OR_RETURN(const Noun* noun, FindNoun(request.names[0]));
  request.names.erase(request.names.begin());
  if (request.all_attempts && noun->get != GetMetrics) {
    return UsageError("--all-attempts is for metrics: shirabe get metrics TRIAL --all-attempts");
  }
  ASSIGN_OR_RETURN(const Session session, OpenSession(globals, /*read_only=*/true));
  return noun->get(session, request);
}

SHIRABE_REGISTER(Verb, {.name = "get",
                        .group = VerbGroup::kRead,
                        .summary = "list records",
                        .completes = CompleteGetWords,
                        .run = Get});

namespace {

using ExperimentSelection = view::Selection<v1::Experiment>;

Printer<v1::Experiment> MakeExperimentPrinter(const ListFlags& flags) {
  return {.header = view::ExperimentHeader(StyleOf(flags)),
          .row = view::ExperimentRow,
          .tree = view::ExperimentJson,
          .name = [](const v1::Experiment& e) { return "experiment/" + e.metadata().name(); }};
}

StatusOr<ExperimentSelection> MakeSelection(const ListFlags& flags) {
  auto selection = ExperimentSelection::Create(view::ExperimentFields(RealClock()->Now()),
                                               flags.filter, flags.sort_by);
  if (!selection.ok()) return AsUsage(selection.status());
  return selection;
}

StatusOr<std::vector<v1::Experiment>> ReadExperiments(const Session& session,
                                                      const GetRequest& request) {
  if (request.names.empty()) {
    return session.client->ListExperiments(request.flags.all_namespaces ? "" : session.ns);
  }
  std::vector<v1::Experiment> experiments;
  for (const std::string& name : request.names) {
    ASSIGN_OR_RETURN(const ExperimentKey key, ExperimentArgument(name, session.ns));
    ASSIGN_OR_RETURN(v1::Experiment experiment, session.client->GetExperiment(key));
    experiments.push_back(std::move(experiment));
  }
  return experiments;
}

// The wide table shows what is spent by now, running attempts included.
Status AddSpending(const Session& session, const ListFlags& flags,
                   std::vector<v1::Experiment>& experiments) {
  if (flags.output != "wide") return absl::OkStatus();
  for (v1::Experiment& experiment : experiments) {
    if (experiment::IsEnded(experiment)) continue;
    ASSIGN_OR_RETURN(const auto open,
                     session.client->ListAttempts(
                         {.experiment = experiment::KeyOf(experiment), .open_only = true}));
    view::AddRunning(open, RealClock()->Now(), experiment);
  }
  return absl::OkStatus();
}

// For ever: prints the experiments of which something has changed since `revision`.
StatusOr<int> WatchExperiments(const Session& session, const GetRequest& request, int64_t revision,
                               Listing<v1::Experiment>& listing) {
  for (;;) {
    RETURN_IF_ERROR(FlushOut());
    RETURN_IF_ERROR(session.client->AwaitChange(revision, kMaxWatchWait).status());
    ASSIGN_OR_RETURN(const auto changes, session.client->Changes(revision));
    if (changes.empty()) continue;
    revision = changes.back().revision;
    std::set<ExperimentKey> changed;
    for (const db::Change& change : changes) {
      if (change.kind == db::Change::Kind::kExperiment) changed.insert(change.experiment);
    }
    ASSIGN_OR_RETURN(auto experiments, ReadExperiments(session, request));
    std::erase_if(experiments, [&](const v1::Experiment& experiment) {
      return !changed.contains(experiment::KeyOf(experiment));
    });
    ASSIGN_OR_RETURN(const ExperimentSelection selection, MakeSelection(request.flags));
    selection.Apply(experiments, -1);
    RETURN_IF_ERROR(AddSpending(session, request.flags, experiments));
    listing.PrintChanged(experiments);
  }
}

}  // namespace

StatusOr<int> GetExperiments(const Session& session, const GetRequest& request) {
  const ListFlags& flags = request.flags;
  ASSIGN_OR_RETURN(const ExperimentSelection selection, MakeSelection(flags));
  ASSIGN_OR_RETURN(const int64_t revision, session.client->Revision());
  ASSIGN_OR_RETURN(auto experiments, ReadExperiments(session, request));
  selection.Apply(experiments, flags.limit.value_or(-1));
  RETURN_IF_ERROR(AddSpending(session, flags, experiments));
  Listing<v1::Experiment> listing(flags, MakeExperimentPrinter(flags));
  if (flags.watch) {
    listing.PrintChanged(experiments);
    return WatchExperiments(session, request, revision, listing);
  }
  if (request.names.size() == 1 && experiments.size() == 1) {
    listing.PrintOne(experiments[0]);
  } else {
    listing.PrintAll(experiments);
  }
  if (experiments.empty() && request.names.empty()) {
    ProgressLine("no experiments" + (flags.all_namespaces ? "" : " in namespace " + session.ns));
  }
  return 0;
}

StatusOr<int> GetSchedules(const Session& session, const GetRequest& request) {
  const ListFlags& flags = request.flags;
  if (flags.watch || !flags.filter.empty() || !flags.sort_by.empty()) {
    return UsageError("--watch, --filter and --sort-by are not for schedules, which are few");
  }
  std::vector<v1::ScheduledExperiment> schedules;
  if (request.names.empty()) {
    const std::string ns = flags.all_namespaces ? "" : session.ns;
    ASSIGN_OR_RETURN(schedules, session.client->List<v1::ScheduledExperiment>("ListSchedules",
                                                                              ScheduleRef("", ns)));
  }
  for (const std::string& name : request.names) {
    ASSIGN_OR_RETURN(auto schedule, session.client->Get<v1::ScheduledExperiment>(
                                        "GetSchedule", ScheduleRef(name, session.ns)));
    schedules.push_back(std::move(schedule));
  }
  if (flags.limit) schedules.resize(std::min<size_t>(schedules.size(), *flags.limit));
  Listing<v1::ScheduledExperiment> listing(
      flags, {.header = view::ScheduleHeader(StyleOf(flags)),
              .row = view::ScheduleRow,
              .tree = view::ScheduleJson,
              .name = [](const auto& one) { return "schedule/" + one.metadata().name(); }});
  if (request.names.size() == 1 && schedules.size() == 1) {
    listing.PrintOne(schedules[0]);
  } else {
    listing.PrintAll(schedules);
  }
  if (schedules.empty()) {
    ProgressLine("no schedules" + (flags.all_namespaces ? "" : " in namespace " + session.ns));
  }
  return 0;
}

}  // namespace shirabe::cmd
