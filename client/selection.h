// Which records are shown, and in which order: --filter and --sort-by over the fields of one type
// of record (field.h). Used by the verbs that list. Immutable once made; any thread may use it.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "client/field.h"
#include "client/filter.h"

namespace shirabe::client {

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
  bool Admits(const Record& record) const;

  // Keeps what is admitted, ordered, at most `limit` (-1 = all). Equal keys keep their order.
  void Apply(std::vector<Record>& records, int64_t limit) const;

 private:
  void Sort(std::vector<Record>& records) const;

  std::vector<std::pair<Field<Record>, Term>> terms_;
  std::optional<Field<Record>> order_;
  bool descending_ = false;
};

extern template class Selection<v1::Trial>;
extern template class Selection<v1::Experiment>;

}  // namespace shirabe::client
