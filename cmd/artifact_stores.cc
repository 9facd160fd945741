#include "cmd/artifact_stores.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "artifacts/package/code_package.h"
#include "artifacts/retries.h"
#include "base/file_io.h"
#include "base/printable.h"
#include "base/registry.h"
#include "base/sha256.h"
#include "base/text/number.h"
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

namespace {

// Of a folder for temporary files; it goes with the process.
StatusOr<Fd> TemporaryFile() {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  if (error) return ErrnoStatus("cannot find a folder for temporary files", error.value());
  std::string name = (folder / "shirabe-package-XXXXXX").string();
  Fd fd(mkostemp(name.data(), O_CLOEXEC));
  if (!fd.valid()) return ErrnoStatus("cannot make " + name, errno);
  unlink(name.c_str());
  return fd;
}

StatusOr<std::string> ChooseStore(const std::string& wanted, const StoreTablePtr& stores,
                                  const std::string& ns) {
  const std::vector<std::string> names =
      stores == nullptr ? std::vector<std::string>() : stores->NamesFor(ns);
  if (names.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "no store is known here that namespace ", ns,
        " may use: name the administrator's file "
        "with --stores FILE. A server takes no packages; they go to the store from here"));
  }
  if (!wanted.empty()) {
    RETURN_IF_ERROR(stores->Check(wanted, ns, artifacts::kCodeStoreField));
    return wanted;
  }
  if (names.size() == 1) return names[0];
  return UsageError(absl::StrCat("namespace ", ns, " may use several stores, ",
                                 absl::StrJoin(names, ", "),
                                 ": name one with --store, or in spec.shirabe.code.store"));
}

StatusOr<std::string> FolderToPack(const std::string& folder) {
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::canonical(folder, error);
  if (!error && std::filesystem::is_directory(whole, error)) return whole.string();
  return UsageError(Quoted(Printable(folder)) + " is no folder: name the one that has the program");
}

// Whether these very bytes are there: what was damaged is put there again.
bool Holds(artifacts::ArtifactStore& store, const std::string& key,
           const artifacts::Packed& packed) {
  const auto there = store.Head(key, {});
  if (!there.ok() || there->bytes != packed.bytes) return false;
  Sha256 hash;
  const auto add = [&](std::string_view piece) {
    hash.Add(piece);
    return absl::OkStatus();
  };
  return store.Get(key, {}, add, {}).ok() && hash.Hex() == packed.sha256;
}

}  // namespace

void AddCode(Options& options, std::string* folder) {
  options.Text("--code", folder, "DIR",
               "upload this folder as shirabe upload does, and run it (spec.shirabe.code)");
}

StatusOr<v1::CodePackage> UploadCode(const CodeUpload& upload, const StoreTablePtr& stores,
                                     const std::string& ns) {
  ASSIGN_OR_RETURN(const std::string folder, FolderToPack(upload.folder));
  ASSIGN_OR_RETURN(const std::string name, ChooseStore(upload.store, stores, ns));
  ASSIGN_OR_RETURN(const auto whole, stores->Find(name, ns));
  ASSIGN_OR_RETURN(const Fd archive, TemporaryFile());
  ASSIGN_OR_RETURN(const artifacts::Packed packed,
                   artifacts::PackFolder({folder, upload.only}, archive.get()));
  const std::string key = artifacts::PackageKey(upload.prefix, packed.sha256);
  RETURN_IF_ERROR(Prefix("--prefix", artifacts::ValidateObjectKey(key)));
  artifacts::RetryingStore store(whole.get(), {});
  const bool known = Holds(store, key, packed);
  if (!known) {
    RETURN_IF_ERROR(
        Prefix("store " + name, store.Put(key, {archive.get(), packed.bytes, packed.sha256}, {})));
  }
  ProgressLine(absl::StrCat(Printable(folder), ": ", packed.files, " files, ",
                            FormatBytes(packed.bytes), known ? " are" : " put", " in store ", name,
                            known ? " already, as " : ", as ", key));
  v1::CodePackage code;
  code.set_store(name);
  code.set_prefix(upload.prefix);
  code.set_package(artifacts::kPackageScheme + packed.sha256);
  return code;
}

Status UploadCodeFor(v1::Experiment& experiment, const std::string& folder,
                     const StoreTablePtr& stores) {
  v1::ShirabeSpec& spec = *experiment.mutable_spec()->mutable_shirabe();
  CodeUpload upload{.folder = folder, .only = "", .store = "", .prefix = ""};
  upload.store = spec.has_code() ? spec.code().store() : spec.artifacts().store();
  upload.prefix = spec.has_code() ? spec.code().prefix() : spec.artifacts().prefix();
  ASSIGN_OR_RETURN(*spec.mutable_code(),
                   UploadCode(upload, stores, experiment.metadata().namespace_()));
  return absl::OkStatus();
}

}  // namespace shirabe::cmd
