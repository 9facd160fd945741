#include "experiment/spec/stores_file.h"

#include <set>
#include <string>

#include "artifacts/artifact_store.h"
#include "base/names.h"
#include "experiment/spec/findings.h"
#include "experiment/spec/validate_rules.h"
#include "experiment/spec/yaml_to_message.h"

namespace shirabe::experiment {
namespace {

constexpr FileKind kStoresFile = {
    .name = "stores file",
    .example =
        "stores: [{name: shared, type: directory, root: /srv/artifacts, namespaces: [default]}]"};

void CheckStores(const v1::ArtifactStores& stores, Findings& findings) {
  CheckTable(stores, "", findings);
  std::set<std::string> names;
  for (int i = 0; i < stores.stores_size(); ++i) {
    const v1::ArtifactStore& store = stores.stores(i);
    const std::string path = ItemPath("stores", i);
    const Status name = ValidatePoolName(store.name());
    if (!store.name().empty() && !name.ok()) {
      findings.Error(ChildPath(path, "name"), shirabe::Message(name));
    }
    const auto* type = Registry<artifacts::StoreType>::Get().Find(store.type());
    if (type != nullptr) {
      const Status valid = type->validate(store);
      if (!valid.ok()) findings.Error(path, shirabe::Message(valid));
    }
    if (store.name().empty() || names.insert(store.name()).second) continue;
    findings.Error(ChildPath(path, "name"),
                   "\"" + store.name() + "\" is the name of another store: rename one");
  }
}

}  // namespace

ParsedStores ParseStores(std::string_view text) {
  ParsedStores parsed;
  Findings findings;
  if (WalkFile(text, kStoresFile, parsed.stores, findings)) CheckStores(parsed.stores, findings);
  parsed.findings = findings.Sorted();
  return parsed;
}

}  // namespace shirabe::experiment
