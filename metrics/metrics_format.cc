#include "metrics/metrics_format.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/text/number.h"
#include "metrics/terminal_text.h"

namespace shirabe::metrics {

struct Patterns {
  std::vector<std::unique_ptr<const RE2>> list;
};

namespace {

constexpr int kGroups = 3;  // the whole match, the name, the value

std::string_view View(const re2::StringPiece& piece) { return {piece.data(), piece.size()}; }

std::string_view Trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

bool IsLetters(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c | 0x20) >= 'a' && (c | 0x20) <= 'z'; });
}

// One match, as places in the line.
struct Match {
  std::string_view name;
  std::string_view value;
  bool ends_with_value = false;  // nothing of the expression stands behind the value
};

// The number that the user means: the value's group, or more where the number goes on behind it. A
// unit behind it ("12ms") is not part of it, for these are the user's own words.
std::string_view WholeValue(std::string_view line, const Match& match) {
  if (!match.ends_with_value || match.value.empty()) return match.value;
  const std::string_view token =
      NumberToken(line, static_cast<size_t>(match.value.data() - line.data()));
  if (token.size() <= match.value.size() || ParseNumber(token)) {
    return token.size() < match.value.size() ? match.value : token;
  }
  return IsLetters(token.substr(match.value.size())) ? match.value : token;
}

class PatternParser : public LineParser {
 public:
  PatternParser(std::vector<std::string> metrics, PatternsPtr patterns)
      : metrics_(std::move(metrics)), patterns_(std::move(patterns)) {}

  void Parse(std::string_view line, ParsedLine& out) const override {
    out.Clear();
    line = StripAnsi(line, out.scratch);
    if (!NamesAny(line)) return;
    std::vector<Match> matches;
    for (const auto& pattern : patterns_->list) FindMatches(*pattern, line, matches);
    SortOnce(matches);
    for (const Match& match : matches) Read(line, match, out);
    const std::optional<absl::Time> time = LeadingTime(line);
    for (ParsedObservation& observation : out.observations) observation.time = time;
  }

 private:
  // A search for the names is far cheaper than the expressions, and most lines hold none.
  bool NamesAny(std::string_view line) const {
    return std::any_of(metrics_.begin(), metrics_.end(), [line](const std::string& metric) {
      return line.find(metric) != std::string_view::npos;
    });
  }

  static void FindMatches(const RE2& pattern, std::string_view line, std::vector<Match>& matches) {
    const re2::StringPiece text(line.data(), line.size());
    re2::StringPiece groups[kGroups];
    for (size_t at = 0; at <= line.size();) {
      if (!pattern.Match(text, at, line.size(), RE2::UNANCHORED, groups, kGroups)) return;
      const std::string_view whole = View(groups[0]);
      if (groups[1].data() != nullptr && groups[2].data() != nullptr) {
        const bool last = groups[2].end() == groups[0].end();
        matches.push_back({Trim(View(groups[1])), Trim(View(groups[2])), last});
      }
      const size_t end = static_cast<size_t>(whole.data() - line.data()) + whole.size();
      at = whole.empty() ? end + 1 : end;
    }
  }

  // In the order of the line; a value that two expressions find counts once.
  static void SortOnce(std::vector<Match>& matches) {
    const auto place = [](const Match& m) { return std::pair(m.value.data(), m.name.data()); };
    std::stable_sort(matches.begin(), matches.end(),
                     [&](const Match& a, const Match& b) { return place(a) < place(b); });
    const auto same = [&](const Match& a, const Match& b) { return place(a) == place(b); };
    matches.erase(std::unique(matches.begin(), matches.end(), same), matches.end());
  }

  void Read(std::string_view line, const Match& match, ParsedLine& out) const {
    const int metric = FindMetric(metrics_, match.name);
    if (metric < 0) return;
    const std::string_view value = WholeValue(line, match);
    if (const std::optional<double> number = ParseNumber(value)) {
      out.observations.push_back({metric, *number, std::nullopt, std::nullopt});
    } else if (out.bad.empty()) {
      out.bad = absl::StrCat(Excerpt(line), ": ", WhyNotNumber(value));
    }
  }

  const std::vector<std::string> metrics_;
  const PatternsPtr patterns_;
};

}  // namespace

RE2::Options PatternOptions() {
  constexpr int64_t kMemory = 2 << 20;  // bytes
  RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(kMemory);
  return options;
}

StatusOr<PatternsPtr> CompilePatterns(const v1::FilterSpec& filter) {
  if (filter.metrics_format().empty()) return PatternsPtr();
  auto patterns = std::make_unique<Patterns>();
  for (int i = 0; i < filter.metrics_format_size(); ++i) {
    const std::string& text = filter.metrics_format(i);
    const std::string field =
        absl::StrCat("spec.metricsCollectorSpec.source.filter.metricsFormat[", i, "]: ");
    auto pattern = std::make_unique<const RE2>(text, PatternOptions());
    if (!pattern->ok()) {
      return absl::InvalidArgumentError(absl::StrCat(field, "\"", text,
                                                     "\" is not a regular expression that RE2 can "
                                                     "read: ",
                                                     pattern->error()));
    }
    if (pattern->NumberOfCapturingGroups() < kGroups - 1) {
      return absl::InvalidArgumentError(absl::StrCat(
          field, "\"", text, "\" needs two groups, the name and the value, as in (\\w+)=(\\S+)"));
    }
    patterns->list.push_back(std::move(pattern));
  }
  return PatternsPtr(std::move(patterns));
}

ParserMaker TextParserMaker(PatternsPtr patterns) {
  if (patterns == nullptr) return MakeTextParser;
  return [patterns](std::vector<std::string> metrics) {
    return std::make_unique<PatternParser>(std::move(metrics), patterns);
  };
}

}  // namespace shirabe::metrics
