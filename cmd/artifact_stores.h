// The administrator's file of artifact stores: read, checked, and what is wrong with it printed on
// stderr as file:line:col. And folders of programs, uploaded to one of them. Used by the main
// thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "artifacts/store_table.h"
#include "base/status.h"
#include "client/state_location.h"
#include "cmd/options.h"
#include "cmd/verb_flags.h"
#include "proto/shirabe/v1/experiment.pb.h"

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

// A folder of a program into a store, as a code package (artifacts/package/code_package.h). Used by
// the verbs that upload one, on the main thread.
struct CodeUpload {
  std::string folder;
  std::string only;    // one folder in it, by its name; "" = all that is in it
  std::string store;   // "" = the only one that the namespace may use
  std::string prefix;  // in the namespace's part of the store
};

// --code, of verbs that upload before they submit.
void AddCode(Options& options, std::string* folder);

// Packs it, and puts it there unless it is there already; says both on stderr. For
// spec.shirabe.code. `stores` may be null: then there are none.
StatusOr<v1::CodePackage> UploadCode(const CodeUpload& upload, const StoreTablePtr& stores,
                                     const std::string& ns);

// Uploads the folder for an experiment, to the store and prefix that it names for its code, else
// for its copies, and has it run that.
Status UploadCodeFor(v1::Experiment& experiment, const std::string& folder,
                     const StoreTablePtr& stores);

}  // namespace shirabe::cmd
