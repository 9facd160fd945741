// algorithms: what the registries hold, with the settings of each.
#include "base/registry.h"
#include "cmd/variant_pages.h"
#include "cmd/verb.h"
#include "cmd/verb_flags.h"
#include "suggestion/algorithm.h"

namespace shirabe::cmd {
namespace {

std::vector<std::string> CompleteAlgorithmsWords(const Arguments&) {
  return Registry<suggestion::AlgorithmInfo>::Get().Names();
}

}  // namespace

StatusOr<int> Algorithms(const Arguments& arguments) {
  Globals globals;
  ListFlags flags;
  std::vector<std::string> names;
  Options options("algorithms [NAME]",
                  "Lists the suggestion algorithms and early-stopping rules, or explains one.");
  options.Arguments("NAME", &names, 0, 1);
  options.Word("-o,--output", &flags.output, {"table", "json", "yaml"}, "how to print");
  options.Flag("--no-headers", &flags.no_headers, "a table without its first line");
  AddGlobals(options, &globals);
  ASSIGN_OR_RETURN(const bool done, ParseAll(options, globals, arguments));
  if (done) return 0;
  std::vector<view::Json> variants = Variants(kAlgorithm);
  for (view::Json& stopper : Variants(kStopper)) variants.push_back(std::move(stopper));
  RETURN_IF_ERROR(PrintVariants(flags, variants, names.empty() ? "" : names[0]));
  return 0;
}

SHIRABE_REGISTER(Verb, {.name = "algorithms",
                        .group = VerbGroup::kTools,
                        .summary = "list the algorithms and early-stopping rules, or explain one",
                        .completes = CompleteAlgorithmsWords,
                        .run = Algorithms});

}  // namespace shirabe::cmd
