#include "metrics/collection_builder.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "metrics/terminal_text.h"

namespace shirabe::metrics {
namespace {

constexpr int64_t kMaxBytes = 4 << 20;
constexpr size_t kMaxPoints = 50'000;

// The wanted metrics, once each: the objective may be among the additional ones.
std::vector<std::string> Distinct(const std::vector<std::string>& metrics) {
  std::vector<std::string> distinct;
  for (const std::string& metric : metrics) {
    if (!metric.empty() && FindMetric(distinct, metric) < 0) distinct.push_back(metric);
  }
  return distinct;
}

bool Contains(const google::protobuf::RepeatedPtrField<std::string>& names,
              const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

CollectionBuilder::CollectionBuilder(const Source& source, const v1::CollectorCursor& cursor)
    : source_(source), metrics_(Distinct(source.metrics)), implicit_steps_(metrics_, cursor) {
  collected_.cursor = cursor;
}

std::vector<std::string> CollectionBuilder::UnclaimedMetrics() const {
  std::vector<std::string> left;
  for (const std::string& metric : metrics_) {
    if (!Contains(collected_.cursor.journalled(), metric)) left.push_back(metric);
  }
  return left;
}

void CollectionBuilder::ClaimAll() {
  for (const Observation& point : collected_.observations) {
    if (Contains(collected_.cursor.journalled(), point.metric)) continue;
    collected_.cursor.add_journalled(point.metric);
  }
}

void CollectionBuilder::Add(const std::string& metric, const ParsedObservation& observation) {
  Observation& point = collected_.observations.emplace_back();
  point.metric = metric;
  point.value = observation.value;
  point.implicit_step = !observation.step;
  point.step = observation.step ? *observation.step : implicit_steps_.Next(metric);
  point.time = observation.time.value_or(source_.now);
}

void CollectionBuilder::AddBad(int64_t count, const std::string& what, const std::string& path) {
  collected_.bad_lines += count;
  if (!collected_.bad_sample.empty()) return;
  collected_.bad_sample = absl::StrCat(what, " (in ", Excerpt(path, 200), ")");
}

bool CollectionBuilder::IsFirst(const std::string& metric) const {
  if (implicit_steps_.Last(metric) > 0) return false;
  if (Contains(collected_.cursor.journalled(), metric)) return false;
  return std::none_of(collected_.observations.begin(), collected_.observations.end(),
                      [&](const Observation& point) { return point.metric == metric; });
}

v1::FileCursor CollectionBuilder::CursorOf(const std::string& path) const {
  for (const v1::FileCursor& file : collected_.cursor.files()) {
    if (file.path() == path) return file;
  }
  v1::FileCursor file;
  file.set_path(path);
  return file;
}

void CollectionBuilder::Save(v1::FileCursor file) {
  if (file.inode() == 0) return;
  for (v1::FileCursor& known : *collected_.cursor.mutable_files()) {
    if (known.path() != file.path()) continue;
    known = std::move(file);
    return;
  }
  *collected_.cursor.add_files() = std::move(file);
}

void CollectionBuilder::CountTail(const TailResult& result, const std::string& path) {
  if (result.long_lines > 0) {
    AddBad(result.long_lines, absl::StrCat("a line of more than ", kMaxLineBytes, " bytes"), path);
  }
  CountBytes(result.bytes);
  if (result.more) RequestMore();
}

int64_t CollectionBuilder::BytesLeft() const { return kMaxBytes - bytes_; }

bool CollectionBuilder::Full() const { return collected_.observations.size() >= kMaxPoints; }

Collected CollectionBuilder::Finish() {
  implicit_steps_.Save(collected_.cursor);
  return std::move(collected_);
}

ImplicitSteps::ImplicitSteps(const std::vector<std::string>& metrics,
                             const v1::CollectorCursor& cursor) {
  for (const std::string& metric : metrics) {
    const auto found = cursor.counts().find(metric);
    counts_[metric] = found == cursor.counts().end() ? 0 : found->second;
  }
}

void ImplicitSteps::Save(v1::CollectorCursor& cursor) const {
  for (const auto& [metric, count] : counts_) {
    if (count != 0) (*cursor.mutable_counts())[metric] = count;
  }
}

}  // namespace shirabe::metrics
