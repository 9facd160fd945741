#include "view/chart_json.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "base/timestamp.h"
#include "client/records/enum_words.h"
#include "experiment/spec/field_rules.h"
#include "experiment/spec/message_tree.h"
#include "view/record_json.h"

namespace shirabe::view {
namespace {

// ---- JSON --------------------------------------------------------------------------------------

Json BestJsonOf(const v1::BestResult& best) {
  Json assignments = Json::array();
  for (const v1::Assignment& assignment : best.assignments()) {
    assignments.push_back(experiment::ToTree(assignment));
  }
  return Shaped<v1::BestResult>(best, {{"assignments", std::move(assignments)}});
}

template <class Item>
Json ItemsJson(const google::protobuf::RepeatedPtrField<Item>& items) {
  Json list = Json::array();
  for (const Item& item : items) list.push_back(Shaped<Item>(item));
  return list;
}

// ---- arrays of numbers -------------------------------------------------------------------------

constexpr char kMagic[] = {'S', 'H', 'I', 'R', 'A', 'B', 'E', 1};
constexpr size_t kFixedBytes = sizeof kMagic + 2 * sizeof(uint32_t);

using Values = google::protobuf::RepeatedField<double>;

// The numbers lie in memory as they are sent.
static_assert(std::endian::native == std::endian::little);

void AppendWord(std::string& to, uint32_t word) {
  char bytes[sizeof word];
  std::memcpy(bytes, &word, sizeof word);
  to.append(bytes, sizeof word);
}

// The head is filled up with blanks, so that the arrays begin at a multiple of eight.
std::string Pack(const Json& head, const std::vector<const Values*>& arrays) {
  std::string text = PrintJsonLine(head);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  size_t numbers = 0;
  for (const Values* values : arrays) numbers += values->size();
  std::string packed;
  packed.reserve(kFixedBytes + text.size() + numbers * sizeof(double));
  packed.append(kMagic, sizeof kMagic);
  AppendWord(packed, static_cast<uint32_t>(text.size()));
  AppendWord(packed, 0);
  packed += text;
  for (const Values* values : arrays) {
    packed.append(reinterpret_cast<const char*>(values->data()), values->size() * sizeof(double));
  }
  return packed;
}

double UnixSeconds(const google::protobuf::Timestamp& time) {
  return absl::ToDoubleSeconds(FromProto(time) - absl::UnixEpoch());
}

std::string KindWordOf(v1::ColumnKind kind) {
  return experiment::WordOf(*v1::ColumnKind_descriptor(), kind);
}

}  // namespace

Json SummaryJson(const v1::Summary& summary) {
  return Shaped<v1::Summary>(summary,
                             {{"best", summary.has_best() ? BestJsonOf(summary.best()) : Json()}});
}

Json CapacityJson(const v1::CapacityReport& report) {
  return Shaped<v1::CapacityReport>(report, {{"pools", ItemsJson(report.pools())},
                                             {"attempts", ItemsJson(report.attempts())},
                                             {"queue", ItemsJson(report.queue())},
                                             {"hours", ItemsJson(report.hours())}});
}

Json RowsJson(const v1::Columns& columns) {
  Json rows = Json::array();
  for (int row = 0; row < columns.rows(); ++row) {
    Json object = Json::object();
    for (const v1::Column& column : columns.columns()) {
      const double value = column.values(row);
      if (std::isnan(value)) continue;
      const bool category = column.kind() == v1::COLUMN_CATEGORY;
      object[column.name()] =
          category ? Json(column.dictionary(static_cast<int>(value))) : NumberJson(value);
    }
    rows.push_back(std::move(object));
  }
  return rows;
}

std::string PackColumns(const v1::Columns& columns, int64_t since, const std::string& next) {
  Json list = Json::array();
  std::vector<const Values*> arrays;
  int64_t offset = 0;
  for (const v1::Column& column : columns.columns()) {
    Json described = {{"name", column.name()}, {"kind", KindWordOf(column.kind())}};
    if (column.kind() == v1::COLUMN_CATEGORY) {
      described["dictionary"] = Json::array();
      for (const std::string& word : column.dictionary()) described["dictionary"].push_back(word);
    }
    described["offset"] = offset;
    offset += column.values_size();
    list.push_back(std::move(described));
    arrays.push_back(&column.values());
  }
  Json head = {{"rows", columns.rows()},
               {"total", columns.total()},
               {"since", since},
               {"revision", columns.revision()},
               {"created", UnixSeconds(columns.created())},
               {"version", columns.version()}};
  if (!next.empty()) head["nextPageToken"] = next;
  head["columns"] = std::move(list);
  return Pack(head, arrays);
}

std::string PackCurves(const v1::Curves& curves) {
  Json list = Json::array();
  std::vector<const Values*> arrays;
  int64_t offset = 0;
  for (const v1::Curve& curve : curves.curves()) {
    list.push_back({{"trial", curve.trial()},
                    {"state", client::PhaseWord(curve.phase())},
                    {"points", curve.points()},
                    {"length", curve.x_size()},
                    {"offset", offset}});
    offset += 2 * curve.x_size();
    arrays.push_back(&curve.x());
    arrays.push_back(&curve.y());
  }
  Json head = {
      {"metric", curves.metric()}, {"trials", curves.trials()}, {"version", curves.version()}};
  if (!curves.too_long().empty()) {
    head["tooLong"] = Json::array();
    for (const int64_t trial : curves.too_long()) head["tooLong"].push_back(trial);
  }
  head["curves"] = std::move(list);
  return Pack(head, arrays);
}

}  // namespace shirabe::view
