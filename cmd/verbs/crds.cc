// crds: the custom resource definitions of a cluster, as YAML for kubectl.
#include "absl/strings/str_join.h"
#include "base/registry.h"
#include "cmd/terminal.h"
#include "cmd/verb.h"
#include "cmd/verb_flags.h"
#include "crd/resource_kinds.h"
#include "view/record_json.h"

namespace shirabe::cmd {
namespace {

// The one that is named, or all of them.
StatusOr<std::vector<view::Json>> Wanted(const std::vector<std::string>& names) {
  std::vector<view::Json> wanted;
  std::vector<std::string> known;
  for (crd::Definition& definition : crd::Definitions()) {
    known.push_back(definition.plural);
    if (names.empty() || names[0] == definition.plural) {
      wanted.push_back(std::move(definition.object));
    }
  }
  if (!wanted.empty()) return wanted;
  return UsageError("unknown resource \"" + names[0] + "\"; known: " + absl::StrJoin(known, ", "));
}

}  // namespace

StatusOr<int> Crds(const Arguments& arguments) {
  Globals globals;
  bool list = false;
  std::vector<std::string> names;
  Options options("crds [RESOURCE]",
                  "Prints the definitions of the custom resources experiments, suggestions and "
                  "trials (kubeflow.org/v1beta1), or one of them: `shirabe crds | kubectl apply "
                  "--server-side -f -`.");
  options.Flag("--list", &list, "one List instead of a document each");
  options.Arguments("RESOURCE", &names, 0, 1);
  AddGlobals(options, &globals);
  ASSIGN_OR_RETURN(const bool done, ParseAll(options, globals, arguments));
  if (done) return 0;
  ASSIGN_OR_RETURN(const auto wanted, Wanted(names));
  view::ListWriter writer(/*yaml=*/true);
  if (list) Out(writer.Begin());
  for (size_t i = 0; i < wanted.size(); ++i) {
    Out(list ? writer.Item(wanted[i]) : (i > 0 ? "---\n" : "") + view::PrintYaml(wanted[i]));
  }
  if (list) Out(writer.End());
  return 0;
}

SHIRABE_REGISTER(Verb, {.name = "crds",
                        .group = VerbGroup::kServe,
                        .summary = "print the custom resource definitions of a cluster",
                        .run = Crds});

}  // namespace shirabe::cmd
