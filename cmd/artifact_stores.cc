#include "cmd/artifact_stores.h"

#include <unistd.h>

#include <cstdlib>
#include <map>

#include "absl/strings/str_cat.h"
#include "base/file_io.h"
#include "cmd/terminal.h"
#include "experiment/spec/stores_file.h"

namespace shirabe::cmd {
namespace {

// One byte more than the parser accepts, so that it is the one to refuse.
constexpr int64_t kMaxStoresBytes = (1 << 20) + 1;

// With its credentials.
StatusOr<StoreTablePtr> LoadStores(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxStoresBytes));
  const experiment::ParsedStores parsed = experiment::ParseStores(text);
  int errors = 0;
  for (const experiment::Finding& finding : parsed.findings) {
    if (!finding.warning) ++errors;
    PrintFinding(experiment::FormatFinding(finding, path), finding.warning);
  }
  if (errors > 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " has ", errors, errors == 1 ? " error" : " errors"));
  }
  auto table = artifacts::StoreTable::Create(parsed.stores);
  for (const v1::ArtifactStore& store : parsed.stores.stores()) {
    // They have been read; no program that we start needs them.
    const std::string& name = store.credentials().environment();
    if (name.empty()) continue;
    unsetenv((name + "_ACCESS_KEY").c_str());
    unsetenv((name + "_SECRET_KEY").c_str());
  }
  RETURN_IF_ERROR(Prefix(path, table.status()));
  return StoreTablePtr(*std::move(table));
}

}  // namespace

StatusOr<StoreTablePtr> FindStores(const Globals& globals, const client::StateLocation& place) {
  const std::string usual = place.home + "/stores.yaml";
  const bool named = !globals.stores.empty();
  if (!named && access(usual.c_str(), F_OK) != 0) {
    if (!globals.knows_stores) return StoreTablePtr();
    ASSIGN_OR_RETURN(auto none, artifacts::StoreTable::Create({}));
    return StoreTablePtr(std::move(none));
  }
  // Once: its variables are gone then.
  static std::map<std::string, StoreTablePtr> loaded;
  const std::string& path = named ? globals.stores : usual;
  const auto known = loaded.find(path);
  if (known != loaded.end()) return known->second;
  ASSIGN_OR_RETURN(StoreTablePtr table, LoadStores(path));
  return loaded[path] = std::move(table);
}

}  // namespace shirabe::cmd
