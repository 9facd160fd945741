// Files that trials have left, for callers who cannot open them: those of a checkpoint, or of a
// trial's folder of outputs. They come from this machine and, where they are gone here, from the
// store that they were copied to. Part of the client over a store (local_client.cc). Thread-safe.
//
// What has a manifest is listed as that says, with the SHA-256 of each file, by which who reads it
// can find out that it is what was saved. Outputs of which there is no copy have none: they are
// what their folder holds just now, and a file of it that changes between two pieces is ABORTED.
// No link is followed on the way (trial/checkpoint/checkpoint_manifest.h, base/open_beneath.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <utility>

#include "artifacts/store_table.h"
#include "base/mutex.h"
#include "base/names.h"
#include "base/status.h"
#include "client/client.h"
#include "client/method_table.h"
#include "client/records/namespace_guard.h"
#include "db/store.h"
#include "trial/checkpoint/checkpoint_manifest.h"
#include "trial/file_layout.h"

namespace shirabe::client {

// Of a file in one answer.
inline constexpr int64_t kMaxFilePiece = 1 << 20;

class TrialFiles {
 public:
  using Stores = std::shared_ptr<const artifacts::StoreTable>;  // shared: with executors
  struct Options {
    db::Store* store = nullptr;  // this and the next two outlive it
    const trial::FileLayout* layout = nullptr;
    NamespaceGuard* namespaces = nullptr;
    Stores stores;                    // null = there are none
    std::function<bool()> elsewhere;  // whether trials run on other machines, in pods
  };
  explicit TrialFiles(Options options) : options_(std::move(options)) {}

  // Its methods; the table lasts no longer than this.
  void AddTo(MethodTable& table);

 private:
  using ManifestPtr = std::shared_ptr<const trial::Manifest>;  // shared: by those who read it
  struct Folder;

  Status ListFiles(const v1::FilesRequest& request, const Sink& sink);
  StatusOr<v1::FileChunk> ReadFile(const v1::ReadFileRequest& request);
  StatusOr<Folder> Find(const v1::FilesRequest& request) const;
  StatusOr<trial::FileTree> OpenTree(const Folder& folder) const;
  // null: it has none, and what is in its folder counts.
  StatusOr<ManifestPtr> FindManifest(const Folder& folder);
  StatusOr<std::string> ManifestText(const Folder& folder);
  Status ListFolder(const Folder& folder, const Sink& sink) const;
  StatusOr<v1::FileChunk> ReadFromFolder(const Folder& folder, const v1::ReadFileRequest& request,
                                         const trial::ManifestFile* listed) const;
  // Runs it with the store that the folder was copied to, and the name of the copy there.
  using StoreCall = std::function<Status(artifacts::ArtifactStore&, const std::string& copy)>;
  Status WithStore(const Folder& folder, const StoreCall& call);

  const Options options_;
  std::atomic<int> store_calls_ = 0;  // under way
  Mutex mutex_;
  // The last ones used, newest first. Called by their digests, which they were compared with.
  std::list<std::pair<std::string, ManifestPtr>> manifests_ ABSL_GUARDED_BY(mutex_);
};

// How far the attempts of a trial are, or of what follows an experiment (spec.shirabe.onSuccess),
// for those who read or follow a log. Any thread.
struct Execution {
  int32_t attempts = 0;
  bool ended = false;  // there will be no more of them
};

// kNotFound if there is no such trial, or if nothing follows the experiment.
StatusOr<Execution> ExecutionOf(Client& client, const TrialKey& key);

}  // namespace shirabe::client
