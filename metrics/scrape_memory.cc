// What is new on a page of metrics, and how it is kept in a file.
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file.h"
#include "base/number.h"
#include "metrics/exposition.h"
#include "metrics/json_line.h"
#include "metrics/scraper.h"
#include "metrics/text.h"

namespace shirabe::metrics {
namespace {

constexpr int kTailLines = 1000;
constexpr int64_t kTailBytes = 1 << 18;
constexpr size_t kShownNames = 5;

// A metric whose name is no name of Prometheus' stands for itself.
Series SeriesOf(const std::string& metric) {
  const std::optional<Series> series = ParseSeries(metric);
  return series ? *series : Series{metric, {}};
}

std::optional<int64_t> StepOf(const Exposition& page) {
  std::string why;
  for (const char* name : {"step", "global_step"}) {
    const Sample* sample = FindSample(page, {name, {}}, why);
    if (sample == nullptr || !(sample->value >= 0 && sample->value < 0x1p62)) continue;
    return static_cast<int64_t>(std::floor(sample->value));
  }
  return std::nullopt;
}

std::string OtherNames(const Exposition& page) {
  std::vector<std::string> names;
  for (const Sample& sample : page.samples) {
    const std::string name = Excerpt(sample.series.name, 63);
    if (names.empty() || names.back() != name) names.push_back(name);
  }
  const bool more = names.size() > kShownNames;
  if (more) names.resize(kShownNames);
  return absl::StrCat(absl::StrJoin(names, ", "), more ? ", …" : "");
}

class ScrapeParser : public LineParser {
 public:
  explicit ScrapeParser(std::unique_ptr<LineParser> json) : json_(std::move(json)) {}

  void Parse(std::string_view line, ParsedLine& out) const override {
    out.Clear();
    if (line.substr(0, 1) == "#") return;
    if (line.substr(0, 2) != "! ") return json_->Parse(line, out);
    out.bad = Excerpt(line.substr(2), 400);
  }

  bool ReturnEndsLine() const override { return false; }

 private:
  const std::unique_ptr<LineParser> json_;
};

}  // namespace

std::unique_ptr<LineParser> MakeScrapeParser(std::vector<std::string> metrics) {
  return std::make_unique<ScrapeParser>(MakeJsonParser(std::move(metrics)));
}

ScrapeMemory::ScrapeMemory(std::vector<std::string> metrics, const std::string& file)
    : metrics_(std::move(metrics)) {
  const auto parser = MakeScrapeParser(metrics_);
  ParsedLine parsed;
  const std::string text = Tail(file, kTailLines, kTailBytes);
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    parser->Parse(line, parsed);
    for (const Reading& reading : parsed.readings) last_[metrics_[reading.metric]] = reading;
    if (line.substr(0, 1) == "#" || line.substr(0, 1) == "!") remark_ = std::string(line);
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
  }
}

std::string ScrapeMemory::LinesFor(std::string_view page, bool open_metrics, absl::Time now) {
  const Exposition exposition = ParseExposition(page, open_metrics);
  const std::optional<int64_t> step = StepOf(exposition);
  std::string lines;
  std::string unclear;
  bool found = false;
  for (const std::string& metric : metrics_) {
    std::string why;
    const Sample* sample = FindSample(exposition, SeriesOf(metric), why);
    if (!why.empty() && unclear.empty()) unclear = why;
    if (sample == nullptr) continue;
    found = true;
    Reading reading{.value = sample->value, .step = step, .time = sample->time};
    const auto last = last_.find(metric);
    const bool known = last != last_.end() && SameNumber(last->second.value, reading.value) &&
                       last->second.step == step &&
                       (!reading.time || last->second.time == reading.time);
    if (known) continue;
    if (!reading.time) reading.time = now;
    last_[metric] = reading;
    lines += PointLine(metric, reading);
  }
  if (!unclear.empty()) return lines + Remark("! " + unclear);
  if (found || exposition.samples.empty()) return lines;
  return Remark(absl::StrCat("# answered, with other names: ", OtherNames(exposition)));
}

std::string ScrapeMemory::Remark(const std::string& line) {
  if (line == remark_) return "";
  remark_ = line;
  return line + "\n";
}

std::string ScrapeMemory::PointLine(const std::string& metric, const Reading& reading) {
  const std::string step = reading.step ? absl::StrCat("\"step\": ", *reading.step, ", ") : "";
  const double seconds = absl::ToDoubleSeconds(*reading.time - absl::UnixEpoch());
  const std::string key =
      nlohmann::json(metric).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return absl::StrCat("{", step, "\"timestamp\": ", FormatNumber(seconds), ", \"metrics\": {", key,
                      ": ", FormatNumber(reading.value), "}}\n");
}

}  // namespace shirabe::metrics
