// What other tools leave behind, read as experiments that have ended: a storage file of Optuna, a
// dump of Katib's objects, a table. Called by `import`. Errors name the file, the place and the
// fix. Pure but for reading the file; any thread.
#pragma once

#include <string>
#include <vector>

#include "client/import_batch.h"

namespace shirabe::import {

// An SQLite file of Optuna (2.0 and later): the studies of this name, or all of them (""). The
// objectives have the names of Study.set_metric_names, else value, or value_0, value_1, …; what a
// trial says of its constraints becomes metrics constraint.NAME that must be at most 0. Pruned
// trials are early-stopped ones, but for those that seem to be better than the study's best. User
// attributes become the notes of the study and its trials. A parameter that some trials have and
// others have not gets a condition, if the values of one that was suggested before it tell which
// do; else it is left out, as Optuna's own intersection does it. `place`: the file, or its address
// sqlite:///FILE.
StatusOr<std::vector<client::Imported>> ReadOptuna(const std::string& place,
                                                   const std::string& study);

// `kubectl get experiments,trials -o yaml` or json: one text, a List or several documents.
StatusOr<std::vector<client::Imported>> ReadKatib(const std::string& path, const std::string& text);

// CSV with a header line: `metric` is the column of the objective, the others are parameters.
// Tables of `shirabe export` are read as well, by their columns param.NAME and metric.NAME; so are
// those of Optuna's Study.trials_dataframe (params_NAME) and of Ray Tune's ResultGrid.get_dataframe
// (config/NAME). Trials that had not ended are left out, with a note. A parameter with empty cells
// gets a condition, as one of Optuna's does, or is categorical, with "" among its values.
struct CsvOptions {
  std::string name;
  std::string metric;
  bool maximize = false;
  std::vector<std::string> parameters = {};  // none: every other column
};
StatusOr<client::Imported> ReadCsv(const std::string& path, const std::string& text,
                                   const CsvOptions& options);

}  // namespace shirabe::import
