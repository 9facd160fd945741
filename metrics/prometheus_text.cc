#include "metrics/prometheus_text.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/text/number.h"
#include "base/timestamp.h"
#include "metrics/terminal_text.h"

namespace shirabe::metrics {
namespace {

constexpr size_t kShownSeries = 3;

bool IsNameByte(char c, bool first) {
  const char lower = static_cast<char>(c | 0x20);
  const bool letter = (lower >= 'a' && lower <= 'z') || c == '_' || c == ':';
  return letter || (!first && ((c >= '0' && c <= '9') || c == '.'));
}

// Reads one line from its beginning; each function returns false where the line is something else.
class SampleReader {
 public:
  explicit SampleReader(std::string_view line) : line_(line) {}

  bool ReadSeries(Series& series) {
    SkipSpace();
    series.name = std::string(Name());
    SkipSpace();
    if (Consume('{') && !Labels(series)) return false;
    return !series.name.empty();
  }

  // What is left: value, time stamp, exemplar.
  bool ReadNumbers(bool open_metrics, Sample& sample) {
    const std::optional<double> value = ParseNumber(Word());
    if (!value) return false;
    sample.value = *value;
    const std::string_view stamp = Word();
    if (!stamp.empty() && stamp != "#") {
      const std::optional<double> number = ParseNumber(stamp);
      if (!number) return false;
      SetTime(open_metrics ? *number : *number / 1000, sample);
      const std::string_view exemplar = Word();
      return exemplar.empty() || exemplar == "#";
    }
    return true;
  }

  bool AtEnd() {
    SkipSpace();
    return at_ == line_.size();
  }

 private:
  static void SetTime(double seconds, Sample& sample) {
    if (!(seconds >= 0 && seconds <= kMaxUnixSeconds)) return;
    sample.time = absl::UnixEpoch() + absl::Seconds(seconds);
  }

  bool Labels(Series& series) {
    for (;;) {
      SkipSpace();
      if (Consume('}')) return true;
      std::string key(Name());
      const bool quoted = key.empty();
      if (quoted && !Quoted(key)) return false;
      SkipSpace();
      if (Consume('=')) {
        SkipSpace();
        if (!Quoted(series.labels[key])) return false;
      } else if (quoted && series.name.empty()) {
        series.name = std::move(key);
      } else {
        return false;
      }
      SkipSpace();
      if (!Consume(',') && Peek() != '}') return false;
    }
  }

  bool Quoted(std::string& text) {
    if (!Consume('"')) return false;
    text.clear();
    for (; at_ < line_.size() && line_[at_] != '"'; ++at_) {
      if (line_[at_] != '\\') {
        text += line_[at_];
        continue;
      }
      if (++at_ == line_.size()) return false;
      text += line_[at_] == 'n' ? '\n' : line_[at_];
    }
    return Consume('"');
  }

  std::string_view Name() {
    const size_t begin = at_;
    while (at_ < line_.size() && IsNameByte(line_[at_], at_ == begin)) ++at_;
    return line_.substr(begin, at_ - begin);
  }

  std::string_view Word() {
    SkipSpace();
    const size_t begin = at_;
    while (at_ < line_.size() && line_[at_] != ' ' && line_[at_] != '\t') ++at_;
    return line_.substr(begin, at_ - begin);
  }

  char Peek() const { return at_ < line_.size() ? line_[at_] : '\0'; }

  bool Consume(char c) {
    if (at_ >= line_.size() || line_[at_] != c) return false;
    ++at_;
    return true;
  }

  void SkipSpace() {
    while (at_ < line_.size() && (line_[at_] == ' ' || line_[at_] == '\t')) ++at_;
  }

  const std::string_view line_;
  size_t at_ = 0;
};

bool Matches(const Series& series, const Series& wanted) {
  if (series.name != wanted.name) return false;
  return std::all_of(wanted.labels.begin(), wanted.labels.end(), [&](const auto& label) {
    const auto found = series.labels.find(label.first);
    return found != series.labels.end() && found->second == label.second;
  });
}

std::string Escaped(const std::string& value) {
  std::string text;
  for (const char c : value) {
    if (c == '\\' || c == '"') text += '\\';
    text += c == '\n' ? "\\n" : std::string(1, c);
  }
  return text;
}

void HandleLine(std::string_view line, bool open_metrics, Exposition& page) {
  while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
  const size_t begin = line.find_first_not_of(" \t");
  if (begin == std::string_view::npos || line[begin] == '#') return;
  Sample sample;
  SampleReader reader(line);
  if (reader.ReadSeries(sample.series) && reader.ReadNumbers(open_metrics, sample)) {
    page.samples.push_back(std::move(sample));
  } else if (++page.bad_lines == 1) {
    page.bad_sample = Excerpt(line);
  }
}

}  // namespace

Exposition ParseExposition(std::string_view text, bool open_metrics) {
  Exposition page;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    HandleLine(text.substr(0, end), open_metrics, page);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return page;
}

std::optional<Series> ParseSeries(std::string_view text) {
  Series series;
  SampleReader reader(text);
  if (!reader.ReadSeries(series) || !reader.AtEnd()) return std::nullopt;
  return series;
}

std::string ToString(const Series& series) {
  if (series.labels.empty()) return series.name;
  return absl::StrCat(series.name, "{",
                      absl::StrJoin(series.labels, ",",
                                    [](std::string* out, const auto& label) {
                                      absl::StrAppend(out, label.first, "=\"",
                                                      Escaped(label.second), "\"");
                                    }),
                      "}");
}

const Sample* FindSample(const Exposition& page, const Series& wanted, std::string& why) {
  std::vector<const Sample*> found;
  for (const Sample& sample : page.samples) {
    if (!Matches(sample.series, wanted)) continue;
    // The same series again replaces the one before it.
    if (!found.empty() && found.back()->series == sample.series) found.pop_back();
    found.push_back(&sample);
  }
  why.clear();
  if (found.empty()) return nullptr;
  if (found.size() == 1) return found[0];
  for (const Sample* sample : found) {
    if (sample->series.labels == wanted.labels) return sample;
  }
  why = absl::StrCat(ToString(wanted), " has ", found.size(), " series: ");
  for (size_t i = 0; i < found.size() && i < kShownSeries; ++i) {
    absl::StrAppend(&why, i == 0 ? "" : ", ", Excerpt(ToString(found[i]->series)));
  }
  absl::StrAppend(&why, found.size() > kShownSeries ? ", …" : "",
                  "; name the metric with the labels of the one you mean");
  return nullptr;
}

}  // namespace shirabe::metrics
