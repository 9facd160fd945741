#include "metrics/line_parser.h"

#include <string.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "base/text/number.h"
#include "metrics/terminal_text.h"

namespace shirabe::metrics {
namespace {

constexpr size_t kNone = std::string_view::npos;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLetter(char c) { return (c | 0x20) >= 'a' && (c | 0x20) <= 'z'; }
bool OneOf(char c, std::string_view set) { return set.find(c) != kNone; }
bool IsBlank(char c) { return c == ' ' || c == '\t'; }
bool DigitAt(std::string_view line, size_t at) { return at < line.size() && IsDigit(line[at]); }

size_t SkipBlanks(std::string_view line, size_t at) {
  while (at < line.size() && IsBlank(line[at])) ++at;
  return at;
}

// The C library's search beats the standard one several times over: most lines hold no metric.
size_t Find(std::string_view line, const std::string& name, size_t from) {
  if (from >= line.size()) return kNone;
  const void* hit = memmem(line.data() + from, line.size() - from, name.data(), name.size());
  return hit == nullptr ? kNone : static_cast<size_t>(static_cast<const char*>(hit) - line.data());
}

// Whether the name at `at` is only the end of a longer one: val_loss, val-loss, val/loss, 1.loss.
// A dot or slash joins only what stands on both sides of it, so "done...loss=1" is no longer name.
bool ContinuesName(std::string_view line, size_t at) {
  if (at == 0) return false;
  const char before = line[at - 1];
  if (before == '-') return true;
  return WordBefore(line, before == '.' || before == '/' ? at - 1 : at);
}

// Where the value of a name that ends at `end` begins; kNone if no = or : follows. "==" and "::"
// are code, not metrics.
size_t ValueAfter(std::string_view line, size_t begin, size_t end) {
  if (end < line.size() && (line[end] == '"' || line[end] == '\'')) {
    if (begin == 0 || line[begin - 1] != line[end]) return kNone;
    ++end;
  }
  end = SkipBlanks(line, end);
  if (end >= line.size() || (line[end] != '=' && line[end] != ':')) return kNone;
  const bool doubled = end + 1 < line.size() && (line[end + 1] == '=' || line[end + 1] == ':');
  return doubled ? kNone : SkipBlanks(line, end + 1);
}

struct Hit {
  size_t begin = 0;  // of the name
  size_t value = 0;
  int metric = 0;
};
using Hits = absl::InlinedVector<Hit, 8>;

// "loss: see below" is prose, "loss: 0,5" a number gone wrong. After = everything is a value.
bool IsProse(std::string_view line, const Hit& hit) {
  if (line.substr(hit.begin, hit.value - hit.begin).find('=') != kNone) return false;
  const std::string_view rest = line.substr(hit.value);
  const std::string_view word = rest.substr(0, rest.find_first_of(" \t"));
  return std::none_of(word.begin(), word.end(), IsDigit);
}

class TextParser : public LineParser {
 public:
  explicit TextParser(std::vector<std::string> metrics) : metrics_(std::move(metrics)) {}

  void Parse(std::string_view line, ParsedLine& out) const override {
    out.Clear();
    line = StripAnsi(line, out.scratch);
    const Hits hits = FindHits(line);
    for (const Hit& hit : hits) Read(line, hit, out);
    if (out.observations.empty()) return;
    const std::optional<absl::Time> time = LeadingTime(line);
    for (ParsedObservation& observation : out.observations) observation.time = time;
  }

 private:
  Hits FindHits(std::string_view line) const {
    Hits hits;
    for (size_t m = 0; m < metrics_.size(); ++m) {
      const std::string& name = metrics_[m];
      for (size_t at = Find(line, name, 0); at != kNone; at = Find(line, name, at + 1)) {
        if (ContinuesName(line, at)) continue;
        const size_t value = ValueAfter(line, at, at + name.size());
        if (value != kNone) hits.push_back({at, value, static_cast<int>(m)});
      }
    }
    if (hits.size() > 1) KeepLongestNames(hits);
    return hits;
  }

  // In the order of the line; of two names that end at one place, the longer ("a b" over "b").
  static void KeepLongestNames(Hits& hits) {
    std::sort(hits.begin(), hits.end(), [](const Hit& a, const Hit& b) {
      return std::tie(a.value, a.begin) < std::tie(b.value, b.begin);
    });
    const auto same_value = [](const Hit& a, const Hit& b) { return a.value == b.value; };
    hits.erase(std::unique(hits.begin(), hits.end(), same_value), hits.end());
  }

  void Read(std::string_view line, const Hit& hit, ParsedLine& out) const {
    const size_t quoted = hit.value < line.size() && OneOf(line[hit.value], "\"'");
    const std::string_view token = NumberToken(line, hit.value + quoted);
    if (const std::optional<double> value = ParseNumber(token)) {
      out.observations.push_back({hit.metric, *value, std::nullopt, std::nullopt});
    } else if (out.bad.empty() && !IsProse(line, hit)) {
      out.bad = absl::StrCat(Excerpt(line.substr(hit.begin)), ": ", WhyNotNumber(token));
    }
  }

  const std::vector<std::string> metrics_;
};

// Characters that are part of a number only between digits: 0,5 12:30 3/4 1'000 2*10 2^10 1=1.
bool JoinsDigits(std::string_view line, size_t at) {
  return OneOf(line[at], ",:/='*^") && DigitAt(line, at + 1);
}

// The same for characters beyond ASCII: spaces and apostrophes that group digits, and ×.
size_t WideJoiner(std::string_view line, size_t at) {
  for (const std::string_view joiner : {"\u00a0", "\u202f", "\u2009", "\u2019", "\u00d7"}) {
    if (line.substr(at, joiner.size()) == joiner) {
      return DigitAt(line, at + joiner.size()) ? joiner.size() : 0;
    }
  }
  return 0;
}

bool IsNumberByte(char c) { return IsDigit(c) || IsLetter(c) || OneOf(c, "._-+#"); }

// How many bytes at `at` go on with the number; 0 = it ends here.
size_t TokenStep(std::string_view line, size_t at) {
  const char c = line[at];
  if (IsNumberByte(c) || JoinsDigits(line, at)) return 1;
  if (static_cast<unsigned char>(c) < 0x80) return 0;
  const size_t letter = WordAt(line, at);
  return letter != 0 ? letter : WideJoiner(line, at);
}

// Where the name begins that may end just before `end`; `end` if there is none.
size_t NameBegin(std::string_view text, size_t end) {
  size_t begin = end;
  while (begin > 0 && (WordBefore(text, begin) || OneOf(text[begin - 1], "./-"))) --begin;
  return begin;
}

}  // namespace

void ParsedLine::Clear() {
  observations.clear();
  bad.clear();
  done = false;
}

std::unique_ptr<LineParser> MakeTextParser(std::vector<std::string> metrics) {
  return std::make_unique<TextParser>(std::move(metrics));
}

std::string_view NumberToken(std::string_view line, size_t at) {
  size_t end = at;
  while (end < line.size()) {
    const size_t step = TokenStep(line, end);
    if (step == 0) break;
    end += step;
  }
  // The full stop of a sentence is no decimal point.
  while (end > at && line[end - 1] == '.') --end;
  return line.substr(at, end - at);
}

std::string WhyNotNumber(std::string_view token) {
  if (token.empty()) return "no number follows";
  if (token.find('_') != kNone) return "digits grouped by '_'; print them without";
  if (token.find(',') != kNone) return "',' inside a number; the decimal sign is '.'";
  if (token.find_first_of("xX") == 1 && token[0] == '0')
    return "hexadecimal; print a decimal number";
  if (std::count(token.begin(), token.end(), '.') > 1) return "more than one decimal point";
  if (IsDigit(token[0])) return "more than a number; print the bare number";
  return "not a number";
}

std::optional<absl::Time> ParseTime(std::string_view text) {
  // absl also reads "infinite-future" and blanks; a time begins with its year.
  if (text.size() < 19 || text.size() > 40 || !IsDigit(text[0]) || text[10] != 'T') {
    return std::nullopt;
  }
  const absl::string_view view(text.data(), text.size());
  absl::Time time;
  if (absl::ParseTime(absl::RFC3339_full, view, &time, nullptr) ||
      absl::ParseTime("%Y-%m-%d%ET%H:%M:%E*S", view, &time, nullptr)) {
    return time;
  }
  return std::nullopt;
}

std::optional<absl::Time> LeadingTime(std::string_view line) {
  if (line.empty() || !IsDigit(line[0])) return std::nullopt;
  const size_t space = line.find(' ');
  return space == kNone ? std::nullopt : ParseTime(line.substr(0, space));
}

int FindMetric(const std::vector<std::string>& metrics, std::string_view name) {
  for (size_t i = 0; i < metrics.size(); ++i) {
    if (metrics[i] == name) return static_cast<int>(i);
  }
  return -1;
}

std::vector<std::string> NamesIn(std::string_view text, size_t limit) {
  std::string scratch;
  text = StripAnsi(text, scratch);
  std::vector<std::string> names;
  for (size_t at = text.find_first_of("=:"); at != kNone; at = text.find_first_of("=:", at + 1)) {
    size_t end = at;
    while (end > 0 && OneOf(text[end - 1], " \t\"'")) --end;
    const size_t begin = NameBegin(text, end);
    const std::string name(text.substr(begin, end - begin));
    const std::string_view number = NumberToken(text, SkipBlanks(text, at + 1));
    if (name.empty() || IsDigit(name[0]) || !ParseNumber(number)) continue;
    if (FindMetric(names, name) < 0) names.push_back(name);
    if (names.size() >= limit) break;
  }
  return names;
}

}  // namespace shirabe::metrics
