// The administrator's file of artifact stores: read, checked, and what is wrong with it printed on
// stderr as file:line:col. Used by the main thread, before there are others.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "artifacts/store_table.h"
#include "base/status.h"
#include "client/state_location.h"
#include "cmd/verb_flags.h"

namespace shirabe::cmd {

// The administrator's stores: of --stores, else of stores.yaml in the state's folder. If there is
// neither, none; null for a verb that another process may know them better than.
using StoreTablePtr = std::shared_ptr<const artifacts::StoreTable>;  // shared: with executors
StatusOr<StoreTablePtr> FindStores(const Globals& globals, const client::StateLocation& place);

// The same file's buckets of Google's Cloud Storage, each as a whole: packages of a job of AI
// Platform lie anywhere in theirs. Only for what a command line fetches, whose user holds the file
// and its credentials; what runs experiments sees of a store what StoreTable gives it.
struct StoreBucket {
  v1::ArtifactStore entry;
  std::shared_ptr<artifacts::ArtifactStore> whole;  // shared: by all that ask for it
};
StatusOr<std::vector<StoreBucket>> FindBuckets(const Globals& globals,
                                               const client::StateLocation& place);

}  // namespace shirabe::cmd
