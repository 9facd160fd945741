#include "client/charts/column_table.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text/did_you_mean.h"

namespace shirabe::client {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr size_t kValueBytes = sizeof(double);
constexpr size_t kShownNames = 20;  // in a message
// Of the head of a reply, beside names and words; the arrays follow it.
constexpr int64_t kHeadBytes = 2048;
constexpr int64_t kHeadBytesOfColumn = 64;

// As JSON writes it, with its quotes and a comma.
int64_t JsonBytes(const std::string& word) {
  int64_t bytes = 3;
  for (const char c : word) {
    const bool control = static_cast<unsigned char>(c) < 0x20;
    bytes += control ? 6 : c == '"' || c == '\\' ? 2 : 1;
  }
  return bytes;
}

Status CheckRange(const char* field, int64_t value, int64_t most) {
  if (value >= 0 && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, " must be from 0 to ", most, ", not ", value));
}

}  // namespace

struct ColumnTable::Chosen {
  std::vector<size_t> rows;
  bool more = false;
  std::vector<std::vector<bool>> used;  // words of categories, by column
};

ColumnTable::ColumnTable(std::vector<ColumnInfo> columns) {
  std::set<std::string> names;
  for (ColumnInfo& info : columns) {
    CHECK(names.insert(info.name).second);
    columns_.push_back({.info = std::move(info)});
    for (const std::string& word : std::as_const(columns_.back().info.words)) {
      IndexOf(columns_.size() - 1, word);
    }
  }
}

double ColumnTable::IndexOf(size_t column, const std::string& word) {
  Stored& stored = columns_[column];
  const auto [found, fresh] = stored.index.try_emplace(word, stored.words.size());
  if (fresh) {
    stored.words.push_back(word);
    word_bytes_ += 2 * static_cast<int64_t>(word.size() + sizeof word) + 64;
  }
  return static_cast<double>(found->second);
}

void ColumnTable::Put(const RowKey& key, int64_t revision, std::span<const double> values) {
  CHECK(values.size() == columns_.size());
  newest_ = std::max(newest_, revision);
  // Rows come in order, but for those that have changed.
  const auto place = keys_.empty() || keys_.back() < key
                         ? keys_.end()
                         : std::lower_bound(keys_.begin(), keys_.end(), key);
  const auto row = place - keys_.begin();
  if (place != keys_.end() && *place == key) {
    for (size_t i = 0; i < values.size(); ++i) columns_[i].values[row] = values[i];
    revisions_[row] = revision;
    return;
  }
  keys_.insert(place, key);
  revisions_.insert(revisions_.begin() + row, revision);
  for (size_t i = 0; i < values.size(); ++i) {
    columns_[i].values.insert(columns_[i].values.begin() + row, values[i]);
  }
}

const ColumnTable::Stored& ColumnTable::Find(const std::string& name) const {
  const auto found = std::find_if(columns_.begin(), columns_.end(),
                                  [&](const Stored& stored) { return stored.info.name == name; });
  CHECK(found != columns_.end());
  return *found;
}

const std::vector<double>& ColumnTable::Values(const std::string& name) const {
  return Find(name).values;
}

const std::string& ColumnTable::WordAt(const std::string& name, size_t row) const {
  static const std::string none;
  const Stored& stored = Find(name);
  const double index = stored.values[row];
  return std::isnan(index) ? none : stored.words[static_cast<size_t>(index)];
}

int64_t ColumnTable::bytes() const {
  const size_t row = sizeof(RowKey) + sizeof(int64_t) + columns_.size() * kValueBytes;
  const size_t frame = sizeof *this + columns_.size() * sizeof(Stored);
  return static_cast<int64_t>(frame + keys_.capacity() * row) + word_bytes_;
}

StatusOr<std::vector<size_t>> ColumnTable::ChooseColumns(const v1::ColumnsRequest& request) const {
  std::vector<size_t> chosen;
  for (size_t i = 0; request.fields().empty() && i < columns_.size(); ++i) {
    if (!columns_[i].info.detail) chosen.push_back(i);
  }
  std::set<std::string> seen;
  for (const std::string& name : request.fields()) {
    std::vector<std::string> names;
    for (const Stored& stored : columns_) names.push_back(stored.info.name);
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
      const auto nearest = Nearest(name, names);
      const bool cut = names.size() > kShownNames;
      if (cut) names.resize(kShownNames);
      return absl::InvalidArgumentError(
          absl::StrCat("there is no column \"", name, "\"",
                       nearest ? "; did you mean \"" + *nearest + "\"?" : "",
                       " (columns: ", absl::StrJoin(names, ", "), cut ? ", …)" : ")"));
    }
    if (!seen.insert(name).second) {
      return absl::InvalidArgumentError("column \"" + name +
                                        "\" is asked for twice: once is enough");
    }
    chosen.push_back(found - names.begin());
  }
  return chosen;
}

// As many rows as the limits admit. A word that only these rows bring counts among their bytes.
ColumnTable::Chosen ColumnTable::ChooseRows(const v1::ColumnsRequest& request,
                                            const std::vector<size_t>& columns) const {
  Chosen chosen{.rows = {}, .more = false, .used = std::vector<std::vector<bool>>(columns_.size())};
  int64_t left = request.max_bytes() == 0 ? kMaxBytes : request.max_bytes();
  std::vector<size_t> categories;
  left -= kHeadBytes;
  for (const size_t column : columns) {
    const Stored& stored = columns_[column];
    left -= kHeadBytesOfColumn + JsonBytes(stored.info.name);
    if (stored.info.kind != v1::COLUMN_CATEGORY) continue;
    chosen.used[column].resize(stored.words.size());
    const size_t fixed = stored.info.words.size();
    std::fill_n(chosen.used[column].begin(), fixed, true);
    for (const std::string& word : stored.info.words) left -= JsonBytes(word);
    if (stored.words.size() > fixed) categories.push_back(column);
  }
  const auto row_bytes = static_cast<int64_t>(columns.size() * kValueBytes);
  const int64_t limit =
      request.limit() == 0 ? std::numeric_limits<int64_t>::max() : request.limit();
  const RowKey after{request.after().trial(), request.after().attempt()};
  const auto first = std::upper_bound(keys_.begin(), keys_.end(), after) - keys_.begin();
  for (size_t row = first; row < keys_.size(); ++row) {
    if (revisions_[row] <= request.since()) continue;
    int64_t bytes = row_bytes;
    for (const size_t column : categories) {
      const double index = columns_[column].values[row];
      if (std::isnan(index) || chosen.used[column][static_cast<size_t>(index)]) continue;
      bytes += JsonBytes(columns_[column].words[static_cast<size_t>(index)]);
    }
    const bool full = static_cast<int64_t>(chosen.rows.size()) == limit || bytes > left;
    // One row always fits, so that asking on comes to an end.
    if (full && !chosen.rows.empty()) {
      chosen.more = true;
      break;
    }
    left -= bytes;
    chosen.rows.push_back(row);
    for (const size_t column : categories) {
      const double index = columns_[column].values[row];
      if (!std::isnan(index)) chosen.used[column][static_cast<size_t>(index)] = true;
    }
  }
  return chosen;
}

void ColumnTable::Copy(const Stored& column, const Chosen& chosen, v1::Column& to) const {
  to.set_name(column.info.name);
  to.set_kind(column.info.kind);
  to.mutable_values()->Resize(static_cast<int>(chosen.rows.size()), kNone);
  double* values = to.mutable_values()->mutable_data();
  if (column.info.kind != v1::COLUMN_CATEGORY) {
    for (size_t i = 0; i < chosen.rows.size(); ++i) values[i] = column.values[chosen.rows[i]];
    return;
  }
  const std::vector<bool>& used = chosen.used[&column - columns_.data()];
  std::vector<double> renumbered(used.size(), kNone);
  for (size_t i = 0; i < used.size(); ++i) {
    if (!used[i]) continue;
    renumbered[i] = to.dictionary_size();
    to.add_dictionary(column.words[i]);
  }
  for (size_t i = 0; i < chosen.rows.size(); ++i) {
    const double index = column.values[chosen.rows[i]];
    if (!std::isnan(index)) values[i] = renumbered[static_cast<size_t>(index)];
  }
}

StatusOr<v1::Columns> ColumnTable::Read(const v1::ColumnsRequest& request) const {
  constexpr int64_t kAny = std::numeric_limits<int64_t>::max();
  RETURN_IF_ERROR(CheckRange("limit", request.limit(), kAny));
  RETURN_IF_ERROR(CheckRange("max_bytes", request.max_bytes(), kMaxBytes));
  RETURN_IF_ERROR(CheckRange("since", request.since(), kAny));
  ASSIGN_OR_RETURN(const std::vector<size_t> columns, ChooseColumns(request));
  const Chosen chosen = ChooseRows(request, columns);
  v1::Columns reply;
  reply.set_rows(static_cast<int64_t>(chosen.rows.size()));
  reply.set_total(static_cast<int64_t>(rows()));
  for (const size_t column : columns) Copy(columns_[column], chosen, *reply.add_columns());
  if (chosen.more) {
    const RowKey& last = keys_[chosen.rows.back()];
    reply.mutable_next()->set_trial(last.trial);
    reply.mutable_next()->set_attempt(last.attempt);
  }
  return reply;
}

}  // namespace shirabe::client
