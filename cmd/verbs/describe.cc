// describe: all about an experiment or a trial.
#include "base/registry.h"
#include "base/text/did_you_mean.h"
#include "cmd/session.h"
#include "cmd/terminal.h"
#include "cmd/verb.h"
#include "cmd/verb_flags.h"
#include "view/describe_experiment.h"
#include "view/lineage.h"
#include "view/schedule_text.h"

namespace shirabe::cmd {
namespace {

enum class Kind { kExperiment, kTrial, kSchedule };

StatusOr<Kind> FindKind(const std::string& word) {
  if (word == "exp" || word == "experiment" || word == "experiments") return Kind::kExperiment;
  if (word == "trial" || word == "trials") return Kind::kTrial;
  if (word == "schedule" || word == "schedules") return Kind::kSchedule;
  const auto nearest = Nearest(word, {"exp", "experiment", "trial", "schedule"});
  return UsageError("there is no \"" + word + "\" to describe" +
                    (nearest ? "; did you mean \"" + *nearest + "\"?"
                             : ": it is exp NAME, trial NAME or schedule NAME"));
}

// One word: "exp/digits" and "trial/digits-7" as `-o name` prints them, "digits/7", or "digits".
std::vector<std::string> WithNoun(const std::string& word) {
  const size_t cut = word.find('/');
  const std::string before = word.substr(0, cut);
  if (FindKind(before).ok()) {
    return cut == std::string::npos ? std::vector{before}
                                    : std::vector{before, word.substr(cut + 1)};
  }
  return {cut == std::string::npos ? "exp" : "trial", word};
}

std::vector<std::string> CompleteDescribeWords(const Arguments& words) {
  if (words.size() == 2) return {"exp", "trial", "schedule"};
  return words[words.size() - 2] == "trial" ? CompleteTrials(words) : CompleteExperiments(words);
}

}  // namespace

StatusOr<int> Describe(const Arguments& arguments) {
  Globals globals;
  std::vector<std::string> words;
  bool lineage = false;
  Options options("describe [exp|trial|schedule] NAME",
                  "Says all about an experiment, a trial or a schedule: how it is, and why. NAME "
                  "alone is an experiment, or a trial if it is one of EXPERIMENT/7.");
  options.Arguments("[exp|trial|schedule] NAME", &words, 1, 2);
  options.Flag("--lineage", &lineage,
               "of an experiment: what each attempt began with (its parent, a checkpoint), and its "
               "steps");
  AddGlobals(options, &globals);
  ASSIGN_OR_RETURN(const bool done, ParseAll(options, globals, arguments));
  if (done) return 0;
  if (words.size() == 1) words = WithNoun(words[0]);
  ASSIGN_OR_RETURN(const Kind kind, FindKind(words[0]));
  if (words.size() < 2)
    return UsageError("NAME is missing; usage: shirabe describe exp|trial|schedule NAME");
  if (lineage && kind == Kind::kSchedule) return UsageError("--lineage is of an experiment");
  if (lineage && kind == Kind::kTrial) {
    return UsageError("--lineage is of an experiment; a trial's attempts stand in describe trial");
  }
  ASSIGN_OR_RETURN(const Session session, OpenSession(globals, /*read_only=*/true));
  const absl::Time now = RealClock()->Now();
  if (kind == Kind::kSchedule) {
    ASSIGN_OR_RETURN(const auto schedule, session.client->Get<v1::ScheduledExperiment>(
                                              "GetSchedule", ScheduleRef(words[1], session.ns)));
    Out(view::DescribeSchedule(schedule, now));
  } else if (kind == Kind::kTrial) {
    ASSIGN_OR_RETURN(const TrialKey key, TrialArgument(words[1], session.ns));
    ASSIGN_OR_RETURN(const std::string text, view::DescribeTrial(*session.client, key, now));
    Out(text);
  } else {
    ASSIGN_OR_RETURN(const ExperimentKey key, ExperimentArgument(words[1], session.ns));
    ASSIGN_OR_RETURN(const std::string text,
                     lineage ? view::DescribeLineage(*session.client, key)
                             : view::DescribeExperiment(*session.client, key, now));
    Out(text);
  }
  return 0;
}

SHIRABE_REGISTER(Verb, {.name = "describe",
                        .group = VerbGroup::kRead,
                        .summary = "say all about one, and why",
                        .completes = CompleteDescribeWords,
                        .run = Describe});

}  // namespace shirabe::cmd
