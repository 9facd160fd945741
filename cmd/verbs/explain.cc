// explain: when to use an algorithm or an early-stopping rule, and what its settings are.
#include "base/registry.h"
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

std::vector<std::string> CompleteExplainWords(const Arguments& words) {
  if (words.size() == 2) return {"algorithm", "stopper"};
  if (words[1] == "algorithm") return Registry<suggestion::AlgorithmInfo>::Get().Names();
  return Registry<suggestion::StopperInfo>::Get().Names();
}

}  // namespace

StatusOr<int> Explain(const Arguments& arguments) {
  Globals globals;
  ListFlags flags;
  std::vector<std::string> words;
  Options options("explain algorithm|stopper [NAME]",
                  "Says when to use an algorithm or an early-stopping rule, and what its settings "
                  "are; without a name, lists them.");
  options.Arguments("KIND NAME", &words, 1, 2);
  options.Word("-o,--output", &flags.output, {"table", "json", "yaml"}, "how to print");
  options.Flag("--no-headers", &flags.no_headers, "a table without its first line");
  AddGlobals(options, &globals);
  ASSIGN_OR_RETURN(const bool done, ParseAll(options, globals, arguments));
  if (done) return 0;
  const std::string kind = KindNamed(words[0]);
  if (kind.empty()) {
    return UsageError("\"" + words[0] + "\" cannot be explained: ask for algorithm or stopper");
  }
  RETURN_IF_ERROR(PrintVariants(flags, Variants(kind), words.size() == 1 ? "" : words[1]));
  return 0;
}

SHIRABE_REGISTER(Verb, {.name = "explain",
                        .group = VerbGroup::kTools,
                        .summary = "when to use an algorithm or a stopper, and its settings",
                        .completes = CompleteExplainWords,
                        .run = Explain});

}  // namespace shirabe::cmd
