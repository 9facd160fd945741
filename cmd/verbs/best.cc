#include "view/best_trial.h"

#include <utility>

#include "base/registry.h"
#include "cmd/session.h"
#include "cmd/terminal.h"
#include "cmd/verb.h"
#include "cmd/verb_flags.h"
#include "experiment/conditions.h"
#include "view/result_front.h"
#include "view/wait_condition.h"

namespace shirabe::cmd {
namespace {

// Of all trials: the status has the first of the front only.
StatusOr<v1::Experiment> Chosen(client::Client& client, v1::Experiment experiment,
                                const view::FrontChoice& choice) {
  const ExperimentKey key = experiment::KeyOf(experiment);
  std::vector<view::FrontCandidate> candidates;
  RETURN_IF_ERROR(view::EachTrialPage(client, key, [&](const std::vector<v1::Trial>& trials) {
    for (const v1::Trial& trial : trials) {
      auto candidate = view::CandidateOf(experiment.spec(), trial);
      if (candidate) candidates.push_back(*std::move(candidate));
    }
    return true;
  }));
  const auto number = view::ChooseTrial(experiment.spec(), choice, std::move(candidates));
  if (!number) return experiment;
  ASSIGN_OR_RETURN(const v1::Trial trial, client.GetTrial({key, *number}));
  return view::WithBest(std::move(experiment), trial);
}

}  // namespace

StatusOr<int> Best(const Arguments& arguments) {
  Globals globals;
  std::vector<std::string> names;
  std::string output = "table";
  bool no_headers = false, recommended = false;
  view::FrontChoice choice;
  Options options(
      "best EXPERIMENT [--recommended | --weights METRIC=WEIGHT … | --order METRIC …] [-o "
      "table|json|yaml|args|env]",
      "Prints the best trial so far. The JSON is {trial, objective, value, step, "
      "assignments}; args and env are quoted for a shell. Where results are noisy, "
      "the algorithm may hold the best one for luck and recommend another trial in "
      "the end. Of several objectives it prints the front, or the one trial of it "
      "that --weights or --order choose; without them the JSON also has {front}.");
  options.Arguments("EXPERIMENT", &names, 1, 1);
  options.Word("-o,--output", &output, {"table", "json", "yaml", "args", "env"}, "how to print");
  options.Flag("--no-headers", &no_headers, "a table without its first line");
  options.Flag("--recommended", &recommended,
               "the recommended trial, if it is another one, with its predicted value");
  options.Texts("--weights", &choice.weights, "METRIC=WEIGHT",
                "the trial of the front whose objectives, each as a part of its "
                "range there, have the least weighted sum; may be repeated");
  options.Texts("--order", &choice.order, "METRIC",
                "the trial of the front that is best in the first metric given; further ones "
                "decide between equals");
  AddGlobals(options, &globals);
  ASSIGN_OR_RETURN(const bool done, ParseAll(options, globals, arguments));
  if (done) return 0;
  ASSIGN_OR_RETURN(const Session session, OpenSession(globals, /*read_only=*/true));
  ASSIGN_OR_RETURN(const ExperimentKey key, ExperimentArgument(names[0], session.ns));
  ASSIGN_OR_RETURN(v1::Experiment experiment, session.client->GetExperiment(key));
  if (recommended && choice.given()) {
    return UsageError("--recommended does not go with --weights or --order: give one of them");
  }
  if (const Status good = view::CheckChoice(experiment.spec(), choice); !good.ok()) {
    return AsUsage(good);
  }
  RETURN_IF_ERROR(view::CheckHasBest(experiment));
  if (choice.given()) {
    ASSIGN_OR_RETURN(experiment, Chosen(*session.client, std::move(experiment), choice));
  }
  if (recommended) {
    experiment = view::WithRecommended(std::move(experiment));
  } else if (const std::string line = view::RecommendedLine(experiment); !line.empty()) {
    ProgressLine("recommended: " + line);
  }
  Out(output == "table" ? view::BestTable(experiment, !no_headers)
                        : view::BestAs(experiment, output));
  return 0;
}

SHIRABE_REGISTER(Verb, {.name = "best",
                        .group = VerbGroup::kRead,
                        .summary = "the best trial, as a table, JSON or arguments",
                        .completes = CompleteExperiments,
                        .outputs = {"table", "json", "yaml", "args", "env"},
                        .run = Best});

}  // namespace shirabe::cmd
