#include "metrics/describe_source.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file_io.h"
#include "base/open_beneath.h"
#include "metrics/attempt_reader.h"
#include "metrics/file_tail.h"
#include "metrics/line_parser.h"
#include "metrics/terminal_text.h"

namespace shirabe::metrics {
namespace {

constexpr size_t kMaxNames = 5;
constexpr int kTailLines = 1000;
constexpr int64_t kTailBytes = 1 << 16;

std::string Quoted(const std::string& name) { return absl::StrCat("\"", Excerpt(name, 63), "\""); }

}  // namespace

std::string QuotedList(const std::vector<std::string>& names) {
  return absl::StrJoin(names, ", ", [](std::string* out, const std::string& name) {
    absl::StrAppend(out, Quoted(name));
  });
}

std::string MetricNames(const Source& source) {
  std::vector<std::string> names;
  for (const std::string& metric : source.metrics) names.push_back(Quoted(metric));
  if (names.size() == 1) return "metric " + names[0];
  if (names.empty()) return "no metric";
  const std::string last = names.back();
  names.pop_back();
  return absl::StrCat("metrics ", absl::StrJoin(names, ", "), " and ", last);
}

std::string TextFormat(const Source& source) {
  const auto& formats = source.spec.source().filter().metrics_format();
  if (!formats.empty())
    return absl::StrCat("with metricsFormat `", absl::StrJoin(formats, "`, `"), "`");
  const std::string name = source.metrics.empty() ? "name" : source.metrics[0];
  return absl::StrCat("as `", name, "=<number>` or `", name, ": <number>`");
}

std::string LineCount(const std::string& path) {
  const int64_t lines = CountLines(path);
  if (lines < 0) return "absent";
  if (lines == 0) return "empty";
  return absl::StrCat(lines, lines == 1 ? " line" : " lines");
}

std::string OtherNames(const std::string& path) {
  const std::vector<std::string> names =
      NamesIn(TailBeneath("", path, kTailLines, kTailBytes), kMaxNames);
  return names.empty() ? "" : absl::StrCat("; it has values named ", QuotedList(names));
}

namespace {

// Katib's word for it, as the field rules of the proto have it.
std::string KindName(const v1::MetricsCollectorSpec& spec) {
  const v1::CollectorKind kind = spec.collector().kind();
  if (kind == v1::COLLECTOR_KIND_UNSPECIFIED) return "StdOut";
  const auto* value = v1::CollectorKind_descriptor()->FindValueByNumber(kind);
  return value == nullptr ? absl::StrCat(static_cast<int>(kind))
                          : value->options().GetExtension(v1::value).yaml();
}

const CollectorInfo* FindCollector(const v1::MetricsCollectorSpec& spec) {
  return Registry<CollectorInfo>::Get().Find(KindName(spec));
}

}  // namespace

StatusOr<std::unique_ptr<Collector>> CreateCollector(const v1::MetricsCollectorSpec& spec) {
  if (const CollectorInfo* info = FindCollector(spec)) return info->create(spec);
  return absl::UnimplementedError(absl::StrCat(
      "spec.metricsCollectorSpec.collector.kind: \"", KindName(spec),
      "\" is not in this build; it has ",
      absl::StrJoin(Registry<CollectorInfo>::Get().Names(), ", "),
      ", and each of them also reads what a program appends to $SHIRABE_METRICS_FILE"));
}

v1::CollectorCursor StartCursor(const Source& source) {
  v1::CollectorCursor cursor;
  const CollectorInfo* info = FindCollector(source.spec);
  if (info == nullptr) return cursor;
  for (const std::string& path : info->shared_files(source)) {
    v1::FileCursor file = EndOfFile(path, RootOf(source, path));
    if (file.inode() != 0) *cursor.add_files() = std::move(file);
  }
  return cursor;
}

std::string DescribeSource(const Source& source) {
  const CollectorInfo* info = FindCollector(source.spec);
  const std::string elsewhere = info == nullptr ? "" : info->describe(source);
  std::string text = absl::StrCat("looked for ", MetricNames(source), elsewhere.empty() ? "" : " ",
                                  elsewhere, elsewhere.empty() ? "" : " and",
                                  " in the metrics file (", LineCount(source.metrics_file), ")");
  // Few programs write it: it is named where it is there.
  const int64_t reports = source.hypertune_file.empty() ? -1 : CountLines(source.hypertune_file);
  if (reports < 0) return text;
  return absl::StrCat(text, " and in hypertune's file (", LineCount(source.hypertune_file),
                      OtherNames(source.hypertune_file), ")");
}

}  // namespace shirabe::metrics
