// An experiment in the file store of MLflow, which its server, its client and `mlflow
// migrate-filestore` read:
//
//   FOLDER/<experiment id>/meta.yaml
//   FOLDER/<experiment id>/<run id>/meta.yaml          a run for each trial that has started
//   FOLDER/<experiment id>/<run id>/metrics/KEY        a line for each value: time, value, step
//   FOLDER/<experiment id>/<run id>/{params,tags}/KEY  a text each
//
// The ids follow from the experiment and the trial, so that the same trial has the same run
// wherever it is exported. All attempts of a trial are one run. Used by one thread.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "client/client.h"

namespace shirabe::tracking {

struct MlflowExport {
  client::Client& client;
  ExperimentKey experiment;
  std::string folder;
};

struct MlflowExported {
  std::string experiment_id;
  int64_t runs = 0;
};

// Appears as a whole, or not at all. kAlreadyExists if it has been exported there before.
StatusOr<MlflowExported> ExportToMlflow(const MlflowExport& wanted);

// Keys of metrics and parameters as MLflow's file store has them: each is the path of a file, so
// that a name must be one that MLflow accepts, must not leave its folder, and must not be a folder
// of another. Names that are fit stay as they are; of others each byte that is not is written as
// ":" and two hexadecimal digits. Different names have different keys. Pure.
class MlflowKeys {
 public:
  explicit MlflowKeys(const std::vector<std::string>& names);

  // Of any name. Of those that were not given, a "/" becomes no folder.
  std::string KeyOf(const std::string& name) const;

 private:
  std::set<std::string> folders_;  // names with a "/" that stay as they are
};

}  // namespace shirabe::tracking
