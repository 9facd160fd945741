// Which records are shown, and in which order: --filter and --sort-by over the fields of one type
// of record. Used by the verbs that list. Immutable once made; any thread may use it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "base/status.h"
#include "proto/shirabe/v1/experiment.pb.h"
#include "proto/shirabe/v1/records.pb.h"

namespace shirabe::view {

// What --filter, --sort-by and export call the parts of a record: state, objective, step, the name
// of a metric, param.lr, … One list a record type, so that a wrong name gets an answer with the
// right ones. Pure functions; a Field may outlive what it was found in, any thread.

// Nothing, a number, or a text.
using FieldValue = std::variant<std::monostate, double, std::string>;

template <class Record>
struct Field {
  std::string name;
  std::function<FieldValue(const Record&)> get;
  bool is_number = true;                // or nothing; else it is text, and may look like a number
  std::vector<std::string> words = {};  // the only texts that it has; empty: any
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

// --filter 'state=Failed,param.lr<1e-3' and --sort-by '~objective': the parts of a condition and
// how values compare. Selection applies them to records. Pure functions, any thread.
enum class Comparison { kEqual, kNotEqual, kLess, kAtMost, kGreater, kAtLeast };

// One part of a filter, before its field is looked up.
struct Term {
  std::string field;
  Comparison comparison = Comparison::kEqual;
  std::string text;
};

// Terms are parted by commas and must all hold; operators are = == != < <= > >=. A value with a
// comma in it is written in double quotes. kInvalidArgument, with the term and the fix.
StatusOr<std::vector<Term>> ParseFilter(const std::string& text);

// Whether the term could hold for a field that is a number, or text: kInvalidArgument, with the
// field, the value and the fix, if not.
Status CheckTerm(const Term& term, bool is_number);

// As numbers where both are, else as text without regard to case, where only = and != can hold.
// Nothing (no objective yet) differs from everything.
bool Holds(const FieldValue& value, const Term& term);

// Numbers before texts before nothing; the latter is last in either direction.
bool Before(const FieldValue& a, const FieldValue& b, bool descending);

// Of trials or of experiments.
template <class Record>
class Selection {
 public:
  // Looks every field up now, so that a wrong name is said before anything is read. "" is no
  // filter, and the order as it is; '~' before the field turns the order round. kInvalidArgument
  // for a filter that cannot be read and for unknown fields.
  static StatusOr<Selection> Create(const Fields<Record>& fields, const std::string& filter,
                                    const std::string& sort_by);

  // Otherwise records may be shown page by page, as they come.
  bool sorts() const { return order_.has_value(); }
  bool descending() const { return descending_; }
  // What the record is sorted by; nothing where there is no order.
  FieldValue OrderOf(const Record& record) const;

  // Whether the record meets all terms of the filter.
  bool Matches(const Record& record) const;

  // Keeps what matches, ordered, at most `limit` (-1 = all). Equal keys keep their order.
  void Apply(std::vector<Record>& records, int64_t limit) const;

 private:
  void Sort(std::vector<Record>& records) const;

  std::vector<std::pair<Field<Record>, Term>> terms_;
  std::optional<Field<Record>> order_;
  bool descending_ = false;
};

extern template class Selection<v1::Trial>;
extern template class Selection<v1::Experiment>;

}  // namespace shirabe::view
