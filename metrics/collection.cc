#include "metrics/collection.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file.h"
#include "metrics/parse.h"
#include "metrics/tail.h"
#include "metrics/text.h"

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
  const std::vector<std::string> names = NamesIn(Tail(path, kTailLines, kTailBytes), kMaxNames);
  return names.empty() ? "" : absl::StrCat("; it has values named ", QuotedList(names));
}

}  // namespace shirabe::metrics
