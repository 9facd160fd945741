#include "cmd/record_printer.h"

#include "base/clock.h"

namespace shirabe::cmd {

view::RowStyle StyleOf(const ListFlags& flags) {
  return {.now = RealClock()->Now(),
          .wide = flags.output == "wide",
          .with_namespace = flags.all_namespaces};
}

bool WantsTree(const ListFlags& flags) { return flags.output == "json" || flags.output == "yaml"; }

void PrintTree(const ListFlags& flags, const view::Json& tree) {
  Out(flags.output == "json" ? view::PrintJson(tree) : view::PrintYaml(tree));
}

void PrintTrees(const ListFlags& flags, const std::vector<view::Json>& trees) {
  view::ListWriter writer(flags.output == "yaml");
  Out(writer.Begin());
  for (const view::Json& tree : trees) Out(writer.Item(tree));
  Out(writer.End());
}

}  // namespace shirabe::cmd
