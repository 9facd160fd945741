#include "view/record_filter.h"

#include <algorithm>
#include <memory>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/names.h"
#include "base/sorting.h"
#include "base/text/did_you_mean.h"
#include "base/text/number.h"
#include "base/timestamp.h"
#include "client/records/enum_words.h"
#include "experiment/spec/field_rules.h"

namespace shirabe::view {

namespace {

std::string Meant(const std::string& word, const std::vector<std::string>& known) {
  const auto nearest = Nearest(word, known);
  return nearest ? "; did you mean \"" + *nearest + "\"?" : "";
}

// A word that no record can have would find none, or all, without a word.
Status CheckWord(const Term& term, const std::vector<std::string>& words) {
  const auto same = [&](const std::string& word) {
    return absl::EqualsIgnoreCase(word, term.text);
  };
  if (words.empty() || std::any_of(words.begin(), words.end(), same)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("field ", term.field, " is never \"", term.text,
                                                 "\"", Meant(term.text, words), " (it is one of ",
                                                 absl::StrJoin(words, ", "), ")"));
}

}  // namespace

template <class Record>
StatusOr<Selection<Record>> Selection<Record>::Create(const Fields<Record>& fields,
                                                      const std::string& filter,
                                                      const std::string& sort_by) {
  Selection selection;
  ASSIGN_OR_RETURN(const std::vector<Term> terms, ParseFilter(filter));
  for (const Term& term : terms) {
    ASSIGN_OR_RETURN(Field<Record> field, FindField(fields, term.field));
    RETURN_IF_ERROR(CheckTerm(term, field.is_number));
    RETURN_IF_ERROR(CheckWord(term, field.words));
    selection.terms_.emplace_back(std::move(field), term);
  }
  if (sort_by.empty()) return selection;
  selection.descending_ = sort_by[0] == '~';
  ASSIGN_OR_RETURN(selection.order_,
                   FindField(fields, sort_by.substr(selection.descending_ ? 1 : 0)));
  return selection;
}

template <class Record>
bool Selection<Record>::Matches(const Record& record) const {
  return std::all_of(terms_.begin(), terms_.end(),
                     [&](const auto& term) { return Holds(term.first.get(record), term.second); });
}

template <class Record>
FieldValue Selection<Record>::OrderOf(const Record& record) const {
  return order_ ? order_->get(record) : FieldValue();
}

template <class Record>
void Selection<Record>::Apply(std::vector<Record>& records, int64_t limit) const {
  std::erase_if(records, [&](const Record& record) { return !Matches(record); });
  if (order_) Sort(records);
  if (limit >= 0 && static_cast<int64_t>(records.size()) > limit) records.resize(limit);
}

// Each key is computed once, and each record moved once: keys may be looked up by name, and records
// are large.
template <class Record>
void Selection<Record>::Sort(std::vector<Record>& records) const {
  std::vector<std::pair<FieldValue, size_t>> keys;
  for (size_t i = 0; i < records.size(); ++i) keys.emplace_back(order_->get(records[i]), i);
  StableSort(keys,
             [&](const auto& a, const auto& b) { return Before(a.first, b.first, descending_); });
  std::vector<Record> sorted;
  sorted.reserve(records.size());
  for (const auto& key : keys) sorted.push_back(std::move(records[key.second]));
  records = std::move(sorted);
}

template class Selection<v1::Trial>;
template class Selection<v1::Experiment>;

namespace {

using TrialGet = std::function<FieldValue(const v1::Trial&)>;
using ExperimentGet = std::function<FieldValue(const v1::Experiment&)>;

constexpr bool kText = false;  // for Field::is_number

FieldValue Shown(const std::optional<client::ShownValue>& shown) {
  if (!shown) return std::monostate();
  return shown->value;
}

FieldValue Count(int64_t count) { return static_cast<double>(count); }

FieldValue ParameterOf(const v1::Trial& trial, const std::string& name) {
  for (const v1::Assignment& assignment : trial.assignments()) {
    if (assignment.name() != name) continue;
    if (assignment.has_category()) return assignment.category();
    return assignment.has_integer() ? Count(assignment.integer()) : assignment.number();
  }
  return std::monostate();
}

FieldValue Seconds(const v1::Trial& trial) {
  if (!trial.has_start_time() || !trial.has_completion_time()) return std::monostate();
  return absl::ToDoubleSeconds(FromProto(trial.completion_time()) - FromProto(trial.start_time()));
}

Fields<v1::Trial> CommonTrialFields() {
  return {
      {"trial", [](const v1::Trial& t) { return Count(t.number()); }},
      {"name",
       [](const v1::Trial& t) {
         return TrialName({ExperimentKeyOf(t), t.number()});
       },
       kText},
      {"state", [](const v1::Trial& t) { return client::PhaseWord(t.phase()); }, kText,
       experiment::WordsOf(*v1::TrialPhase_descriptor())},
      {"reason", [](const v1::Trial& t) { return t.reason(); }, kText},
      {"attempts", [](const v1::Trial& t) { return Count(t.attempts()); }},
      {"failures", [](const v1::Trial& t) { return Count(t.failures()); }},
      {"preemptions", [](const v1::Trial& t) { return Count(t.preemptions()); }},
      {"seconds", Seconds},
      {"cost", [](const v1::Trial& t) { return t.cost(); }},
  };
}

template <class Record>
StatusOr<Field<Record>> Find(const Fields<Record>& fields, const std::string& name) {
  std::vector<std::string> names;
  for (const Field<Record>& field : fields) {
    if (field.name == name) return field;
    names.push_back(field.name);
  }
  for (const char* prefix : {"metric.", "param."}) {
    for (const Field<Record>& field : fields) {
      if (field.name == prefix + name) return field;
    }
  }
  return absl::InvalidArgumentError(absl::StrCat("there is no field \"", name, "\"",
                                                 Meant(name, names),
                                                 " (fields: ", absl::StrJoin(names, ", "), ")"));
}

}  // namespace

Fields<v1::Trial> TrialFields(const v1::Experiment& experiment) {
  // Shared by the fields, which are copied freely: one copy of the specification for all of them.
  auto spec = std::make_shared<v1::Experiment>();  // shared: see above
  *spec->mutable_spec()->mutable_objective() = experiment.spec().objective();
  Fields<v1::Trial> fields = CommonTrialFields();
  fields.push_back({"objective", [spec](const v1::Trial& t) -> FieldValue {
                      return Shown(client::ShownObjective(*spec, t));
                    }});
  fields.push_back({"step", [spec](const v1::Trial& t) -> FieldValue {
                      const auto shown = client::ShownObjective(*spec, t);
                      return shown ? Count(shown->step) : FieldValue();
                    }});
  for (const std::string& metric : client::MetricNames(experiment)) {
    fields.push_back({"metric." + metric, [spec, metric](const v1::Trial& t) -> FieldValue {
                        return Shown(client::ShownMetric(*spec, t, metric));
                      }});
  }
  for (const v1::ParameterSpec& parameter : experiment.spec().parameters()) {
    fields.push_back(
        {"param." + parameter.name(),
         [name = parameter.name()](const v1::Trial& t) { return ParameterOf(t, name); },
         parameter.parameter_type() != v1::CATEGORICAL});
  }
  return fields;
}

Fields<v1::Experiment> ExperimentFields(absl::Time now) {
  using E = v1::Experiment;
  return {
      {"name", [](const E& e) { return e.metadata().name(); }, kText},
      {"namespace", [](const E& e) { return e.metadata().namespace_(); }, kText},
      {"state",
       [](const E& e) { return client::StateWord(e); },
       kText,
       {"Created", "Running", "Restarting", "Paused", "Stopping", "Succeeded", "Failed"}},
      {"best",
       [](const E& e) -> FieldValue {
         const v1::OptimalTrial& best = e.status().current_optimal_trial();
         if (!best.has_objective()) return std::monostate();
         return best.objective();
       }},
      {"trials", [](const E& e) { return Count(e.status().trials()); }},
      {"running", [](const E& e) { return Count(e.status().trials_running()); }},
      {"failed", [](const E& e) { return Count(e.status().trials_failed()); }},
      {"age",
       [now](const E& e) {
         return absl::ToDoubleSeconds(now - FromProto(e.metadata().creation_timestamp()));
       }},
      {"cost", [](const E& e) { return e.status().shirabe().cost(); }},
      {"preemptions", [](const E& e) { return Count(e.status().shirabe().preemptions()); }},
      {"algorithm", [](const E& e) { return e.spec().algorithm().algorithm_name(); }, kText},
  };
}

StatusOr<Field<v1::Trial>> FindField(const Fields<v1::Trial>& fields, const std::string& name) {
  return Find(fields, name);
}

StatusOr<Field<v1::Experiment>> FindField(const Fields<v1::Experiment>& fields,
                                          const std::string& name) {
  return Find(fields, name);
}

namespace {

struct Operator {
  std::string_view text;
  Comparison comparison;
};

// The longer ones first, so that "<=" is not read as "<".
constexpr Operator kOperators[] = {
    {"==", Comparison::kEqual},   {"!=", Comparison::kNotEqual}, {"<=", Comparison::kAtMost},
    {">=", Comparison::kAtLeast}, {"=", Comparison::kEqual},     {"<", Comparison::kLess},
    {">", Comparison::kGreater},
};

std::string Trim(const std::string& text) { return std::string(absl::StripAsciiWhitespace(text)); }

Status BadTerm(const std::string& term) {
  return absl::InvalidArgumentError(
      absl::StrCat("\"", term,
                   "\" is not a condition: write FIELD=VALUE, or with != < <= > >=, as in "
                   "'state=Failed,param.lr<1e-3'"));
}

// Commas part terms, except within double quotes.
StatusOr<std::vector<std::string>> SplitTerms(const std::string& text) {
  std::vector<std::string> terms(1);
  bool quoted = false;
  for (const char c : text) {
    if (c == '"') quoted = !quoted;
    if (c == ',' && !quoted) {
      terms.emplace_back();
    } else {
      terms.back() += c;
    }
  }
  if (quoted) return absl::InvalidArgumentError("a quote is not closed in the filter: " + text);
  return terms;
}

bool BySize(Comparison comparison) {
  return comparison != Comparison::kEqual && comparison != Comparison::kNotEqual;
}

StatusOr<Term> ParseTerm(const std::string& text) {
  const size_t at = text.find_first_of("=!<>");
  if (at == std::string::npos) return BadTerm(text);
  for (const Operator& op : kOperators) {
    if (text.compare(at, op.text.size(), op.text) != 0) continue;
    Term term{Trim(text.substr(0, at)), op.comparison, Trim(text.substr(at + op.text.size()))};
    if (term.field.empty()) return BadTerm(text);
    if (term.text.size() >= 2 && term.text.front() == '"' && term.text.back() == '"') {
      term.text = term.text.substr(1, term.text.size() - 2);
    }
    if (BySize(op.comparison) && !ParseNumber(term.text)) {
      return absl::InvalidArgumentError(absl::StrCat("\"", text, "\": \"", term.text,
                                                     "\" is not a number, and only numbers are ",
                                                     "compared by size (times are in seconds)"));
    }
    return term;
  }
  return BadTerm(text);
}

bool Compare(double a, Comparison comparison, double b) {
  switch (comparison) {
    case Comparison::kEqual: return a == b;
    case Comparison::kNotEqual: return a != b;
    case Comparison::kLess: return a < b;
    case Comparison::kAtMost: return a <= b;
    case Comparison::kGreater: return a > b;
    case Comparison::kAtLeast: return a >= b;
  }
  return false;
}

}  // namespace

StatusOr<std::vector<Term>> ParseFilter(const std::string& text) {
  std::vector<Term> terms;
  if (Trim(text).empty()) return terms;
  ASSIGN_OR_RETURN(const std::vector<std::string> parts, SplitTerms(text));
  for (const std::string& part : parts) {
    ASSIGN_OR_RETURN(Term term, ParseTerm(Trim(part)));
    terms.push_back(std::move(term));
  }
  return terms;
}

Status CheckTerm(const Term& term, bool is_number) {
  if (is_number && !ParseNumber(term.text)) {
    return absl::InvalidArgumentError(
        absl::StrCat("field ", term.field, " is a number, and \"", term.text,
                     "\" is not, so that no record could meet it: write a number, as in '",
                     term.field, "=0.5' (times are in seconds)"));
  }
  if (!is_number && BySize(term.comparison)) {
    return absl::InvalidArgumentError(
        absl::StrCat("field ", term.field, " is text, which is not compared by size with ",
                     term.text, ": use = or !=, as in '", term.field, "=", term.text, "'"));
  }
  return absl::OkStatus();
}

bool Holds(const FieldValue& value, const Term& term) {
  if (const double* number = std::get_if<double>(&value)) {
    const auto wanted = ParseNumber(term.text);
    return wanted ? Compare(*number, term.comparison, *wanted)
                  : term.comparison == Comparison::kNotEqual;
  }
  const std::string* text = std::get_if<std::string>(&value);
  if (text == nullptr) return term.comparison == Comparison::kNotEqual;
  const bool equal = absl::EqualsIgnoreCase(*text, term.text);
  if (term.comparison == Comparison::kEqual) return equal;
  return term.comparison == Comparison::kNotEqual && !equal;
}

bool Before(const FieldValue& a, const FieldValue& b, bool descending) {
  // NaN is not a number to sort by: it stands with nothing.
  const auto rank = [](const FieldValue& value) {
    const double* number = std::get_if<double>(&value);
    if (number != nullptr) return *number == *number ? 0 : 2;
    return std::holds_alternative<std::string>(value) ? 1 : 2;
  };
  if (rank(a) != rank(b)) return rank(a) < rank(b);
  if (rank(a) == 2) return false;
  return descending ? b < a : a < b;
}

}  // namespace shirabe::view
