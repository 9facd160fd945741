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
#include "proto/shirabe/v1/collector_traits.h"

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

std::string TextFormat(const v1::FilterSpec& filter, const Source& source) {
  const auto& formats = filter.metrics_format();
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

StatusOr<std::unique_ptr<Collector>> CreateCollector(const v1::MetricsCollectorSpec& spec) {
  const v1::CollectorKind kind = spec.collector().kind();
  std::string name = v1::NameOf(kind == v1::COLLECTOR_KIND_UNSPECIFIED ? v1::STD_OUT : kind);
  if (name.empty()) name = absl::StrCat(static_cast<int>(kind));
  const auto& registry = Registry<CollectorInfo>::Get();
  if (const CollectorInfo* info = registry.Find(name)) return info->create(spec);
  return absl::UnimplementedError(absl::StrCat(
      "spec.metricsCollectorSpec.collector.kind: \"", name, "\" is not in this build; it has ",
      absl::StrJoin(registry.Names(), ", "),
      ", and each of them also reads what a program appends to $SHIRABE_METRICS_FILE"));
}

v1::CollectorCursor StartCursor(const Collector& collector, const Source& source) {
  v1::CollectorCursor cursor;
  for (const std::string& path : collector.Files(source.files)) {
    v1::FileCursor file = EndOfFile(path, RootOf(source, path));
    if (file.inode() != 0) *cursor.add_files() = std::move(file);
  }
  return cursor;
}

std::string DescribeSource(const Collector& collector, const Source& source) {
  const AttemptFiles& files = source.files;
  const std::string elsewhere = collector.Describe(source);
  std::string text = absl::StrCat("looked for ", MetricNames(source), elsewhere.empty() ? "" : " ",
                                  elsewhere, elsewhere.empty() ? "" : " and",
                                  " in the metrics file (", LineCount(files.metrics), ")");
  // Few programs write it: it is named where it is there.
  const int64_t reports = files.hypertune.empty() ? -1 : CountLines(files.hypertune);
  if (reports < 0) return text;
  return absl::StrCat(text, " and in hypertune's file (", LineCount(files.hypertune),
                      OtherNames(files.hypertune), ")");
}

}  // namespace shirabe::metrics
