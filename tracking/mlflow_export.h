// An experiment in the file store of MLflow, which its server, its client and `mlflow
// migrate-filestore` read:
//
//   FOLDER/<experiment id>/meta.yaml
//   FOLDER/<experiment id>/<run id>/meta.yaml          a run for each trial that has started
//   FOLDER/<experiment id>/<run id>/metrics/KEY        a line for each value: time, value, step
//   FOLDER/<experiment id>/<run id>/{params,tags}/KEY  a text each
//
// The ids follow from the experiment and the trial, so that the same trial has the same run
// wherever it is exported. All attempts of a trial are one run. Keys: mlflow_names.h. Used by one
// thread.
#pragma once

#include <string>

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

}  // namespace shirabe::tracking
