// A folder of a program into a store, as a code package (artifacts/package/code_package.h). Used by
// the verbs that upload one, on the main thread.
#pragma once

#include <string>

#include "base/status.h"
#include "cmd/artifact_stores.h"
#include "cmd/options.h"
#include "proto/shirabe/v1/experiment.pb.h"

namespace shirabe::cmd {

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
