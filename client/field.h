// What --filter, --sort-by and export call the parts of a record: state, objective, step, the name
// of a metric, param.lr, … One list a record type, so that a wrong name gets an answer with the
// right ones. Pure functions; a Field may outlive what it was found in, any thread.
#pragma once

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "base/status.h"
#include "proto/shirabe/v1/experiment.pb.h"
#include "proto/shirabe/v1/records.pb.h"

namespace shirabe::client {

// Nothing, a number, or a text.
using FieldValue = std::variant<std::monostate, double, std::string>;

template <class Record>
struct Field {
  std::string name;
  std::function<FieldValue(const Record&)> get;
  bool is_number = true;  // or nothing; else it is text, and may look like a number
};

template <class Record>
using Fields = std::vector<Field<Record>>;

// trial, name, state, reason, objective, step, attempts, failures, preemptions, seconds, cost; then
// each metric as metric.NAME and each parameter as param.NAME. The experiment is copied.
Fields<v1::Trial> TrialFields(const v1::Experiment& experiment);
// name, namespace, state, best, trials, running, failed, age (in seconds), cost, preemptions,
// algorithm.
Fields<v1::Experiment> ExperimentFields(absl::Time now);

// By name; for a trial also a metric's or a parameter's own name. kInvalidArgument, with the
// nearest name and the list, if there is none.
StatusOr<Field<v1::Trial>> FindField(const Fields<v1::Trial>& fields, const std::string& name);
StatusOr<Field<v1::Experiment>> FindField(const Fields<v1::Experiment>& fields,
                                          const std::string& name);

}  // namespace shirabe::client
