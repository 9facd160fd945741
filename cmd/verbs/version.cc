#include "base/registry.h"
#include "cmd/session.h"
#include "cmd/terminal.h"
#include "cmd/verb.h"

namespace shirabe::cmd {

StatusOr<int> Version(const Arguments& arguments) {
  std::string output = "table";
  Globals globals;
  Options options("version [-o json]", "Prints the version.");
  options.Word("-o,--output", &output, {"table", "json"}, "how to print");
  AddGlobals(options, &globals);
  ASSIGN_OR_RETURN(const bool done, ParseAll(options, globals, arguments));
  if (done) return 0;
  Out(output == "json" ? view::PrintJson({{"version", SHIRABE_VERSION}})
                       : "shirabe " SHIRABE_VERSION "\n");
  return 0;
}

SHIRABE_REGISTER(Verb, {.name = "version",
                        .group = VerbGroup::kTools,
                        .summary = "print the version",
                        .run = Version});

}  // namespace shirabe::cmd
