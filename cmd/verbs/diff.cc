// diff: what apply would change. Nothing is written.
#include "absl/strings/str_cat.h"
#include "base/registry.h"
#include "cmd/record_printer.h"
#include "cmd/session.h"
#include "cmd/spec_file.h"
#include "cmd/terminal.h"
#include "cmd/verb.h"
#include "cmd/verb_flags.h"
#include "experiment/conditions.h"
#include "experiment/submission.h"
#include "view/spec_diff.h"

namespace shirabe::cmd {
namespace {

constexpr int kDiffers = 1;
constexpr int kTrouble = 2;  // an error is never mistaken for a difference

struct StoredExperiment {
  ExperimentKey key;
  bool exists = false;
  std::vector<view::SpecDifference> differences;
  bool differs() const { return !exists || !differences.empty(); }
};

StatusOr<StoredExperiment> Compare(client::Client& client, const v1::Experiment& wanted) {
  StoredExperiment found{.key = experiment::KeyOf(wanted)};
  const auto stored = client.GetExperiment(found.key);
  if (absl::IsNotFound(stored.status())) return found;
  RETURN_IF_ERROR(stored.status());
  found.exists = true;
  found.differences = view::DiffSpecs(*stored, wanted);
  return found;
}

view::Json DiffTree(const StoredExperiment& found) {
  view::Json differences = view::Json::array();
  for (const auto& difference : found.differences) {
    differences.push_back(view::DifferenceJson(difference));
  }
  return {{"namespace", found.key.ns},
          {"experiment", found.key.name},
          {"exists", found.exists},
          {"differences", std::move(differences)}};
}

void PrintDifferences(const StoredExperiment& found) {
  if (!found.differs()) return;
  Out("--- " + ToString(found.key) + "\n");
  if (!found.exists) Out("+ does not exist: apply creates it\n");
  for (const auto& difference : found.differences) Out(view::DifferenceText(difference));
}

StatusOr<int> Compare(const Globals& globals, const std::vector<std::string>& files,
                      const ListFlags& flags) {
  ASSIGN_OR_RETURN(const Session session, OpenSession(globals, /*read_only=*/true));
  ASSIGN_OR_RETURN(const auto experiments, LoadFor(session, files));
  bool differs = false;
  std::vector<view::Json> trees;
  for (const v1::Experiment& experiment : experiments) {
    ASSIGN_OR_RETURN(const StoredExperiment found, Compare(*session.client, experiment));
    differs = differs || found.differs();
    if (WantsTree(flags)) trees.push_back(DiffTree(found));
    if (!WantsTree(flags)) PrintDifferences(found);
  }
  if (WantsTree(flags)) PrintTrees(flags, trees);
  return differs ? kDiffers : kOk;
}

}  // namespace

StatusOr<int> Diff(const Arguments& arguments) {
  Globals globals;
  ListFlags flags;
  std::vector<std::string> files;
  Options options("diff -f FILE",
                  "Shows what apply would change, field by field, defaults filled in. Exits with 0 "
                  "if nothing differs, 1 if something does, and more than 1 on an error.");
  options.Texts("-f,--file", &files, "FILE",
                "experiments in YAML, or - for stdin; may be repeated");
  options.Word("-o,--output", &flags.output, {"table", "json", "yaml"}, "how to print");
  options.Arguments("nothing", nullptr, 0, 0);
  AddGlobals(options, &globals);
  ASSIGN_OR_RETURN(const bool done, ParseAll(options, globals, arguments));
  if (done) return 0;
  if (files.empty()) return UsageError("give -f FILE");
  auto outcome = Compare(globals, files, flags);
  if (outcome.ok() || ExitCodeOf(outcome.status()) != kFailure) return outcome;
  PrintError(outcome.status());
  return kTrouble;
}

SHIRABE_REGISTER(Verb, {.name = "diff",
                        .group = VerbGroup::kSubmit,
                        .summary = "show what apply would change",
                        .run = Diff});

}  // namespace shirabe::cmd
