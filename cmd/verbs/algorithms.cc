// algorithms: what the registries hold, with the settings of each.
#include "cmd/session.h"
#include "cmd/variant_pages.h"
#include "cmd/verb.h"

namespace shirabe::cmd {

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

}  // namespace shirabe::cmd
