#include "client/selection.h"

#include <algorithm>

namespace shirabe::client {

template <class Record>
StatusOr<Selection<Record>> Selection<Record>::Create(const Fields<Record>& fields,
                                                      const std::string& filter,
                                                      const std::string& sort_by) {
  Selection selection;
  ASSIGN_OR_RETURN(const std::vector<Term> terms, ParseFilter(filter));
  for (const Term& term : terms) {
    ASSIGN_OR_RETURN(Field<Record> field, FindField(fields, term.field));
    RETURN_IF_ERROR(CheckTerm(term, field.is_number));
    selection.terms_.emplace_back(std::move(field), term);
  }
  if (sort_by.empty()) return selection;
  selection.descending_ = sort_by[0] == '~';
  ASSIGN_OR_RETURN(selection.order_,
                   FindField(fields, sort_by.substr(selection.descending_ ? 1 : 0)));
  return selection;
}

template <class Record>
bool Selection<Record>::Admits(const Record& record) const {
  return std::all_of(terms_.begin(), terms_.end(),
                     [&](const auto& term) { return Holds(term.first.get(record), term.second); });
}

template <class Record>
FieldValue Selection<Record>::OrderOf(const Record& record) const {
  return order_ ? order_->get(record) : FieldValue();
}

template <class Record>
void Selection<Record>::Apply(std::vector<Record>& records, int64_t limit) const {
  std::erase_if(records, [&](const Record& record) { return !Admits(record); });
  if (order_) Sort(records);
  if (limit >= 0 && static_cast<int64_t>(records.size()) > limit) records.resize(limit);
}

// Each key is computed once, and each record moved once: keys may be looked up by name, and records
// are large.
template <class Record>
void Selection<Record>::Sort(std::vector<Record>& records) const {
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

template class Selection<v1::Trial>;
template class Selection<v1::Experiment>;

}  // namespace shirabe::client
