// What `import` makes of other tools' results, before it is stored: a search that has ended, with
// its trials. Readers (import_*.cc) fill it in, Client::Import stores it in one commit. Values are
// text here, as the files have them; they become typed by the specification, as everything that is
// read. Plain values; one thread.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "base/status.h"
#include "db/store.h"

namespace shirabe::client {

struct ImportedObservation {
  std::string metric;
  int64_t step = 0;
  double value = 0;
};

struct ImportedTrial {
  std::string name;  // what it is called there
  std::vector<std::pair<std::string, std::string>> values;
  std::vector<ImportedObservation> points;
  v1::TrialPhase phase = v1::TRIAL_SUCCEEDED;  // a terminal one
  std::string message;
  absl::Time start = absl::InfinitePast();  // where it is known
  absl::Time end = absl::InfinitePast();
  std::string note = {};  // what else is known of it, for people; cut to what a note may hold
};

struct Imported {
  std::string name;                  // a valid one of an experiment
  std::string source;                // "Optuna study mnist", for people
  std::string ns = {};               // the namespace that it was in; "" = none is known
  nlohmann::ordered_json objective;  // as in Katib's YAML, as is the next one
  nlohmann::ordered_json parameters;
  std::vector<ImportedTrial> trials;
  // Of spec.shirabe: additionalObjectives, constraints and space, where there are any.
  nlohmann::ordered_json further = nlohmann::ordered_json::object();
  std::string note = {};           // of the experiment, as that of a trial
  std::vector<std::string> notes;  // what was left out, in words
  v1::Actor actor = {};            // who imports it; never from the wire
  std::string namespace_uid = {};  // of the namespace it goes to; "" = not known
};

// The text in lower case, with '-' for what a name may not have, cut to its length; "imported" if
// nothing is left.
std::string ExperimentNameFrom(const std::string& text);

// The search space that just holds these values: whole numbers make an int, other numbers a
// double, the rest a categorical parameter, as does a number that is always the same.
nlohmann::ordered_json SpaceFromValues(const std::string& name,
                                       const std::vector<std::string>& values);

// The experiment as it is stored, ended and successful; trials whose point is not in the space are
// left out, with a note. kInvalidArgument if nothing is left.
StatusOr<db::Batch> MakeBatch(const std::string& ns, Imported& imported, absl::Time now);

}  // namespace shirabe::client
