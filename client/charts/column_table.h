// Rows by columns: what charts draw of trials or attempts, as one array of numbers for each column,
// from which a reply is copied without looking at records. Filled by column_cache.h. Used by one
// thread at a time.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "proto/shirabe/v1/charts.pb.h"

namespace shirabe::client {

struct RowKey {
  int64_t trial = 0;
  int32_t attempt = 0;  // 0 where rows are trials
  auto operator<=>(const RowKey&) const = default;
};

struct ColumnInfo {
  std::string name;
  v1::ColumnKind kind = v1::COLUMN_NUMBER;
  bool detail = false;                  // only where it is asked for by its name
  std::vector<std::string> words = {};  // of a category: what it may be, always with these indices
};

class ColumnTable {
 public:
  // No reply has more bytes, with its head (docs/design/formats.md).
  static constexpr int64_t kMaxBytes = 8'000'000;

  // Names must differ.
  explicit ColumnTable(std::vector<ColumnInfo> columns);

  // The row with this key, new or not, as it is since `revision`: one value for each column, NaN
  // where there is none.
  void Put(const RowKey& key, int64_t revision, std::span<const double> values);
  // The value of a category; a word that is new is remembered.
  double IndexOf(size_t column, const std::string& word);

  // Columns, rows and revision as `request` has them; version, revision and created are left to the
  // caller. kInvalidArgument, naming the field, for what is out of range and for columns that there
  // are not.
  StatusOr<v1::Columns> Read(const v1::ColumnsRequest& request) const;

  size_t rows() const { return keys_.size(); }
  const RowKey& key(size_t row) const { return keys_[row]; }
  int64_t revision(size_t row) const { return revisions_[row]; }
  // The newest revision of a row; 0 without rows.
  int64_t newest() const { return newest_; }
  // All values of a column, which must be there.
  const std::vector<double>& Values(const std::string& name) const;
  // The word of a category's value; "" where there is none.
  const std::string& WordAt(const std::string& name, size_t row) const;
  // About how much memory it takes.
  int64_t bytes() const;

 private:
  struct Stored {
    ColumnInfo info;
    std::vector<double> values = {};
    std::vector<std::string> words = {};  // info.words, then those that came
    std::map<std::string, size_t> index = {};
  };
  struct Chosen;  // the rows of a reply

  const Stored& Find(const std::string& name) const;
  StatusOr<std::vector<size_t>> ChooseColumns(const v1::ColumnsRequest& request) const;
  Chosen ChooseRows(const v1::ColumnsRequest& request, const std::vector<size_t>& columns) const;
  void Copy(const Stored& column, const Chosen& chosen, v1::Column& to) const;

  std::vector<Stored> columns_;
  std::vector<RowKey> keys_;  // ascending
  std::vector<int64_t> revisions_;
  int64_t newest_ = 0;
  int64_t word_bytes_ = 0;
};

}  // namespace shirabe::client
