// explain: when to use an algorithm or an early-stopping rule, and what its settings are; what a
// field of an experiment means.
#include "base/registry.h"
#include "cmd/field_pages.h"
#include "cmd/record_printer.h"
#include "cmd/terminal.h"
#include "cmd/variant_pages.h"
#include "cmd/verb.h"
#include "cmd/verb_flags.h"
#include "suggestion/algorithm.h"
#include "suggestion/early_stopping.h"

namespace shirabe::cmd {
namespace {

// What is asked about, as people may call it; "" if it is neither.
std::string KindNamed(const std::string& word) {
  if (word == kAlgorithm || word == "algorithms") return kAlgorithm;
  if (word == kStopper || word == "stoppers" || word == "earlyStopping") return kStopper;
  return "";
}

// A field, right or mistaken.
bool IsField(const std::string& word) {
  return word == "experiment" || word == "experiments" || word == "spec" || word == "metadata" ||
         word.find('.') != std::string::npos;
}

std::vector<std::string> CompleteExplainWords(const Arguments& words) {
  if (words.size() == 2) return {"algorithm", "experiment", "stopper"};
  if (words[1] == "algorithm") return Registry<suggestion::AlgorithmInfo>::Get().Names();
  if (words[1] == "stopper") return Registry<suggestion::StopperInfo>::Get().Names();
  return {};
}

Status ExplainField(const ListFlags& flags, const std::string& path) {
  ASSIGN_OR_RETURN(const view::Json field, FieldOfExperiment(path));
  if (WantsTree(flags)) {
    PrintTree(flags, field);
  } else {
    Out(FieldPage(field));
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<int> Explain(const Arguments& arguments) {
  Globals globals;
  ListFlags flags;
  std::vector<std::string> words;
  Options options("explain algorithm|stopper [NAME] | FIELD",
                  "Says when to use an algorithm or an early-stopping rule, and what its settings "
                  "are; without a name, lists them. Of a field of an experiment, such as "
                  "spec.shirabe.space or experiment, what it means and what stands below it.");
  options.Arguments("KIND NAME", &words, 1, 2);
  options.Word("-o,--output", &flags.output, {"table", "json", "yaml"}, "how to print");
  options.Flag("--no-headers", &flags.no_headers, "a table without its first line");
  AddGlobals(options, &globals);
  ASSIGN_OR_RETURN(const bool done, ParseAll(options, globals, arguments));
  if (done) return 0;
  const std::string kind = KindNamed(words[0]);
  if (kind.empty() && words.size() == 1 && IsField(words[0])) {
    RETURN_IF_ERROR(ExplainField(flags, words[0]));
    return 0;
  }
  if (kind.empty()) {
    return UsageError("\"" + words[0] +
                      "\" cannot be explained: ask for algorithm, stopper, or a field such as "
                      "spec.parameters");
  }
  RETURN_IF_ERROR(PrintVariants(flags, Variants(kind), words.size() == 1 ? "" : words[1]));
  return 0;
}

SHIRABE_REGISTER(Verb, {.name = "explain",
                        .group = VerbGroup::kTools,
                        .summary = "when to use an algorithm or a stopper; what a field means",
                        .completes = CompleteExplainWords,
                        .run = Explain});

}  // namespace shirabe::cmd
