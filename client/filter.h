// --filter 'state=Failed,param.lr<1e-3' and --sort-by '~objective': which records are shown, and in
// which order. Pure functions, any thread.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "client/field.h"

namespace shirabe::client {

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

// As numbers where both are, else as text without regard to case, where only = and != can hold.
// Nothing (no objective yet) differs from everything.
bool Holds(const FieldValue& value, const Term& term);

// Numbers before texts before nothing; the latter is last in either direction.
bool Before(const FieldValue& a, const FieldValue& b, bool descending);

// A filter and an order over one type of record.
template <class Record>
class Selection {
 public:
  // kInvalidArgument for a filter that cannot be read and for unknown fields. "" is no filter, and
  // the order as it is; '~' before the field turns the order round.
  static StatusOr<Selection> Create(const Fields<Record>& fields, const std::string& filter,
                                    const std::string& sort_by) {
    Selection selection;
    ASSIGN_OR_RETURN(const std::vector<Term> terms, ParseFilter(filter));
    for (const Term& term : terms) {
      ASSIGN_OR_RETURN(Field<Record> field, FindField(fields, term.field));
      selection.terms_.emplace_back(std::move(field), term);
    }
    if (sort_by.empty()) return selection;
    selection.descending_ = sort_by[0] == '~';
    ASSIGN_OR_RETURN(selection.order_,
                     FindField(fields, sort_by.substr(selection.descending_ ? 1 : 0)));
    return selection;
  }

  bool Admits(const Record& record) const {
    return std::all_of(terms_.begin(), terms_.end(), [&](const auto& term) {
      return Holds(term.first.get(record), term.second);
    });
  }

  // Whether records may be shown as they come, and reading may stop at a limit.
  bool trivial() const { return terms_.empty() && !order_; }

  // Keeps what is admitted, ordered, at most `limit` (-1 = all).
  void Apply(std::vector<Record>& records, int64_t limit) const {
    std::erase_if(records, [&](const Record& record) { return !Admits(record); });
    if (order_) Sort(records);
    if (limit >= 0 && static_cast<int64_t>(records.size()) > limit) records.resize(limit);
  }

 private:
  // Each key is computed once, and each record moved once.
  void Sort(std::vector<Record>& records) const {
    std::vector<std::pair<FieldValue, size_t>> keys;
    for (size_t i = 0; i < records.size(); ++i) keys.emplace_back(order_->get(records[i]), i);
    std::stable_sort(keys.begin(), keys.end(), [&](const auto& a, const auto& b) {
      return Before(a.first, b.first, descending_);
    });
    std::vector<Record> sorted;
    sorted.reserve(records.size());
    for (const auto& key : keys) sorted.push_back(std::move(records[key.second]));
    records = std::move(sorted);
  }

  std::vector<std::pair<Field<Record>, Term>> terms_;
  std::optional<Field<Record>> order_;
  bool descending_ = false;
};

}  // namespace shirabe::client
