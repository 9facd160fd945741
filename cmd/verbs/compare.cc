// compare: trials or experiments side by side.
#include "view/comparison.h"

#include "base/registry.h"
#include "cmd/record_printer.h"
#include "cmd/session.h"
#include "cmd/terminal.h"
#include "cmd/verb.h"
#include "cmd/verb_flags.h"
#include "cmd/verbs/get_nouns.h"
#include "view/wait_condition.h"

namespace shirabe::cmd {
namespace {

struct Things {
  std::vector<view::ComparedTrial> trials;
  std::vector<view::ComparedExperiment> experiments;
};

Status ReadTrial(const Session& session, const TrialKey& key, Things& things) {
  view::ComparedTrial compared;
  ASSIGN_OR_RETURN(compared.experiment, session.client->GetExperiment(key.experiment));
  ASSIGN_OR_RETURN(compared.trial, session.client->GetTrial(key));
  things.trials.push_back(std::move(compared));
  return absl::OkStatus();
}

Status ReadExperiment(const Session& session, const ExperimentKey& key, Things& things) {
  view::ComparedExperiment compared;
  ASSIGN_OR_RETURN(compared.experiment, session.client->GetExperiment(key));
  RETURN_IF_ERROR(
      view::EachTrialPage(*session.client, key, [&](const std::vector<v1::Trial>& trials) {
        compared.trials.insert(compared.trials.end(), trials.begin(), trials.end());
        return true;
      }));
  things.experiments.push_back(std::move(compared));
  return absl::OkStatus();
}

StatusOr<Things> ReadAll(const Session& session, const std::vector<std::string>& names) {
  Things things;
  for (const std::string& name : names) {
    ASSIGN_OR_RETURN(const auto trial, TrialUnlessExperiment(session, name));
    if (trial) {
      RETURN_IF_ERROR(ReadTrial(session, *trial, things));
    } else {
      ASSIGN_OR_RETURN(const ExperimentKey key, ExperimentArgument(name, session.ns));
      RETURN_IF_ERROR(ReadExperiment(session, key, things));
    }
  }
  if (things.trials.empty() || things.experiments.empty()) return things;
  return UsageError("compare takes trials, or experiments, not both: " +
                    things.experiments[0].experiment.metadata().name() + " is an experiment");
}

template <class Compared>
void PrintComparison(const std::vector<Compared>& compared, const ListFlags& flags, bool all) {
  if (WantsTree(flags)) return PrintTree(flags, view::CompareJson(compared));
  Out(view::CompareTable(compared, all));
}

}  // namespace

StatusOr<int> Compare(const Arguments& arguments) {
  Globals globals;
  ListFlags flags;
  std::vector<std::string> names;
  bool all = false;
  Options options("compare A B…",
                  "Shows trials, or experiments, side by side: the parameters that differ, what "
                  "they came to, what they cost; of experiments also the best so far after equally "
                  "many trials.");
  options.Arguments("TRIAL or EXPERIMENT", &names, 2, 20);
  options.Flag("--all", &all, "also the parameters that do not differ");
  options.Word("-o,--output", &flags.output, {"table", "json", "yaml"}, "how to print");
  AddGlobals(options, &globals);
  ASSIGN_OR_RETURN(const bool done, ParseAll(options, globals, arguments));
  if (done) return 0;
  ASSIGN_OR_RETURN(const Session session, OpenSession(globals, /*read_only=*/true));
  ASSIGN_OR_RETURN(const Things things, ReadAll(session, names));
  if (things.trials.empty()) {
    PrintComparison(things.experiments, flags, all);
  } else {
    PrintComparison(things.trials, flags, all);
  }
  return 0;
}

SHIRABE_REGISTER(Verb, {.name = "compare",
                        .group = VerbGroup::kRead,
                        .summary = "trials or experiments side by side",
                        .completes = CompleteExperiments,
                        .run = Compare});

}  // namespace shirabe::cmd
