// The stores of an administrator's file (--stores FILE), and who may use them. Made once, at start,
// and shared by what runs experiments. Thread-safe.
//
// A namespace sees its own part of a store only: every key that it is given begins with its name,
// below the `folder` of the entry. What it may not use it cannot tell from what does not exist.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "artifacts/artifact_store.h"
#include "base/mutex.h"
#include "base/status.h"
#include "proto/shirabe/v1/artifacts.pb.h"

namespace shirabe::artifacts {

inline constexpr char kCopyStoreField[] = "spec.shirabe.artifacts.store";
inline constexpr char kCodeStoreField[] = "spec.shirabe.code.store";

// Whether an entry is for the namespace, or for all ('*').
bool MayUse(const v1::ArtifactStore& entry, const std::string& ns);

class StoreTable {
 public:
  // kInvalidArgument, naming entry and field, for what cannot be used: all of it is looked at once,
  // with its credentials, so that a slip is told at start and not in the middle of an experiment.
  static StatusOr<std::unique_ptr<StoreTable>> Create(const v1::ArtifactStores& stores);

  // Of one store that is there already, under the name and for the namespaces of an entry.
  static std::unique_ptr<StoreTable> Of(
      const v1::ArtifactStore& entry,
      std::shared_ptr<ArtifactStore> store);  // shared: by the namespaces that use it

  // kInvalidArgument, naming the field and the fix, unless the namespace may use the store.
  Status Check(const std::string& store, const std::string& ns,
               const char* field = kCopyStoreField) const;
  // The same, and unless pods, which have no credentials, can be given URLs to it.
  Status CheckForPods(const std::string& store, const std::string& ns,
                      const char* field = kCopyStoreField) const;
  // Before pods of the namespace get URLs to put with: kFailedPrecondition where they could read
  // with them what others have in the bucket (TakesUnsignedCopies, whose other errors it has). The
  // server is asked where another namespace may use the bucket, and once.
  Status CheckPutsOfPods(const std::string& store, const std::string& ns) const;
  // Those that it may use, by name.
  std::vector<std::string> NamesFor(const std::string& ns) const;

  // How long what an experiment has had copied there stays after its end; nullopt = for ever.
  std::optional<double> KeepDays(const std::string& store) const;

  // The namespace's part of the store; the errors of Check. It outlives the table's callers.
  StatusOr<std::shared_ptr<ArtifactStore>> Find(const std::string& store,  // shared: with threads
                                                const std::string& ns) const;

 private:
  struct Entry {
    v1::ArtifactStore entry;
    std::shared_ptr<ArtifactStore> store;  // shared: by the namespaces that use it
  };
  explicit StoreTable(std::map<std::string, Entry> entries) : entries_(std::move(entries)) {}
  const Entry* FindAllowed(const std::string& store, const std::string& ns) const;
  // Whether others than one namespace may use its bucket, or what its key may read.
  bool IsShared(const v1::ArtifactStore& entry) const;
  StatusOr<bool> AskForUnsignedCopies(const std::string& store, const std::string& bucket,
                                      ArtifactStore& part) const;

  const std::map<std::string, Entry> entries_;
  mutable Mutex mutex_;
  // By store; nullopt = the server is being asked; what is not there has not been asked yet.
  mutable std::map<std::string, std::optional<bool>> unsigned_copies_ ABSL_GUARDED_BY(mutex_);
};

// Whether a server of S3 takes an `x-amz-copy-source` that is not signed: then the bearer of a URL
// to put one object with has any other object copied there that the URL's signer may read. S3
// refuses headers of its own that are not signed; MinIO, of 2026, takes this one.
//
// Asks the server as such a bearer would, with URLs of the store: puts two objects, has one copied
// to the place of the other, looks at what is there, and removes both. Six requests, of four
// seconds at most each. `bucket` is the store's. kPermissionDenied if it does not take what is put;
// kUnavailable where the answers leave it open.
StatusOr<bool> TakesUnsignedCopies(ArtifactStore& store, const std::string& bucket);

}  // namespace shirabe::artifacts
