#include "cmd/artifact_stores.h"

#include <unistd.h>

#include <cstdlib>
#include <map>

#include "absl/strings/str_cat.h"
#include "base/file_io.h"
#include "base/registry.h"
#include "cmd/terminal.h"
#include "experiment/spec/server_files.h"

namespace shirabe::cmd {
namespace {

// One byte more than the parser accepts, so that it is the one to refuse.
constexpr int64_t kMaxStoresBytes = (1 << 20) + 1;

struct LoadedStores {
  StoreTablePtr table;
  std::vector<StoreBucket> buckets;
};

StatusOr<std::vector<StoreBucket>> OpenBuckets(const v1::ArtifactStores& stores) {
  constexpr char kType[] = "gcs";
  std::vector<StoreBucket> buckets;
  for (const v1::ArtifactStore& entry : stores.stores()) {
    if (entry.type() != kType) continue;
    ASSIGN_OR_RETURN(auto whole, Registry<artifacts::StoreType>::Get().Find(kType)->open(entry));
    buckets.push_back({entry, std::move(whole)});
  }
  return buckets;
}

// With its credentials.
StatusOr<LoadedStores> LoadStores(const std::string& path) {
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
  auto buckets =
      table.ok() ? OpenBuckets(parsed.stores) : StatusOr<std::vector<StoreBucket>>(table.status());
  for (const v1::ArtifactStore& store : parsed.stores.stores()) {
    // They have been read; no program that we start needs them.
    const std::string& name = store.credentials().environment();
    if (name.empty()) continue;
    unsetenv((name + "_ACCESS_KEY").c_str());
    unsetenv((name + "_SECRET_KEY").c_str());
  }
  RETURN_IF_ERROR(Prefix(path, buckets.status()));
  return LoadedStores{StoreTablePtr(*std::move(table)), *std::move(buckets)};
}

// Nothing where there is no file.
StatusOr<LoadedStores> FindLoaded(const Globals& globals, const client::StateLocation& place) {
  const std::string usual = place.home + "/stores.yaml";
  const bool named = !globals.stores.empty();
  if (!named && access(usual.c_str(), F_OK) != 0) return LoadedStores();
  // Once: its variables are gone then.
  static std::map<std::string, LoadedStores> loaded;
  const std::string& path = named ? globals.stores : usual;
  const auto known = loaded.find(path);
  if (known != loaded.end()) return known->second;
  ASSIGN_OR_RETURN(LoadedStores stores, LoadStores(path));
  return loaded[path] = std::move(stores);
}

}  // namespace

StatusOr<StoreTablePtr> FindStores(const Globals& globals, const client::StateLocation& place) {
  ASSIGN_OR_RETURN(const LoadedStores loaded, FindLoaded(globals, place));
  if (loaded.table != nullptr || !globals.knows_stores) return loaded.table;
  ASSIGN_OR_RETURN(auto none, artifacts::StoreTable::Create({}));
  return StoreTablePtr(std::move(none));
}

StatusOr<std::vector<StoreBucket>> FindBuckets(const Globals& globals,
                                               const client::StateLocation& place) {
  ASSIGN_OR_RETURN(LoadedStores loaded, FindLoaded(globals, place));
  return std::move(loaded.buckets);
}

}  // namespace shirabe::cmd
