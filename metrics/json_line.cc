#include "metrics/json_line.h"

#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/text/number.h"
#include "base/timestamp.h"
#include "metrics/terminal_text.h"

namespace shirabe::metrics {
namespace {

constexpr int kMaxDepth = 64;

bool IsHex(char c) { return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f'); }

bool IsTokenByte(char c) {
  return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || c == '+' ||
         c == '-' || c == '.';
}

void AppendUtf8(uint32_t code, std::string& out) {
  if (code < 0x80) {
    out += static_cast<char>(code);
    return;
  }
  if (code >= 0x10000) {
    out += static_cast<char>(0xf0 | code >> 18);
    out += static_cast<char>(0x80 | (code >> 12 & 0x3f));
  } else if (code >= 0x800) {
    out += static_cast<char>(0xe0 | code >> 12);
  } else {
    out += static_cast<char>(0xc0 | code >> 6);
    out += static_cast<char>(0x80 | (code & 0x3f));
    return;
  }
  out += static_cast<char>(0x80 | (code >> 6 & 0x3f));
  out += static_cast<char>(0x80 | (code & 0x3f));
}

uint32_t HexAt(std::string_view raw, size_t at) {
  uint32_t code = 0;
  for (size_t i = at; i < at + 4 && i < raw.size(); ++i) {
    code = code << 4 |
           static_cast<uint32_t>(raw[i] <= '9' ? raw[i] - '0' : (raw[i] | 0x20) - 'a' + 10);
  }
  return code;
}

// What stands between the quotes, without its escapes. `raw` has been scanned: escapes are whole.
std::string Unescape(std::string_view raw) {
  std::string out;
  for (size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] != '\\') {
      out += raw[i];
      continue;
    }
    switch (raw[++i]) {
      case 'b': out += '\b'; break;
      case 'f': out += '\f'; break;
      case 'n': out += '\n'; break;
      case 'r': out += '\r'; break;
      case 't': out += '\t'; break;
      case 'u': {
        uint32_t code = HexAt(raw, i + 1);
        i += 4;
        const bool high = code >= 0xd800 && code < 0xdc00;
        if (high && raw.substr(i + 1, 2) == "\\u") {
          code = 0x10000 + ((code & 0x3ff) << 10) + (HexAt(raw, i + 3) & 0x3ff);
          i += 6;
        }
        AppendUtf8(code, out);
        break;
      }
      default: out += raw[i];
    }
  }
  return out;
}

struct Scalar {
  enum class Kind { kNumber, kString, kNull, kTrue, kFalse, kComposite };
  Kind kind = Kind::kNull;
  std::string_view raw;  // of a string: what stands between the quotes
};

// Reads one line by descent; every function returns false once the line turns out to be no JSON.
class Scanner {
 public:
  struct Wanted {
    std::vector<std::string> metrics;
    std::string step;  // the key that holds it
  };
  Scanner(const Wanted& wanted, std::string_view line, ParsedLine& out)
      : wanted_(wanted), line_(line), out_(out) {}

  // All of the line: objects, usually one. Two writers that share a file may put two on a line.
  bool Line() {
    do {
      if (!TopObject()) return false;
      SkipSpace();
    } while (at_ < line_.size());
    return true;
  }

  size_t at() const { return at_; }

 private:
  enum class JsonScope { kTop, kMetrics, kElsewhere };

  bool TopObject() {
    const size_t first = out_.observations.size();
    step_.reset();
    time_.reset();
    step_ok_ = true;
    SkipSpace();
    if (!Object(JsonScope::kTop, 0)) return false;
    if (!step_ok_) out_.observations.resize(first);
    for (size_t i = first; i < out_.observations.size(); ++i) {
      out_.observations[i].step = step_;
      out_.observations[i].time = time_;
    }
    return true;
  }

  bool Object(JsonScope place, int depth) {
    if (!Consume('{') || depth > kMaxDepth) return false;
    SkipSpace();
    if (Consume('}')) return true;
    do {
      SkipSpace();
      Scalar key;
      if (!String(key)) return false;
      SkipSpace();
      if (!Consume(':') || !Member(place, key.raw, depth)) return false;
      SkipSpace();
    } while (Consume(','));
    return Consume('}');
  }

  bool Member(JsonScope place, std::string_view raw_key, int depth) {
    SkipSpace();
    std::string unescaped;
    std::string_view key = raw_key;
    if (key.find('\\') != std::string_view::npos) key = unescaped = Unescape(key);
    const bool metrics = place == JsonScope::kTop && key == "metrics" && Peek() == '{';
    if (metrics) return Object(JsonScope::kMetrics, depth + 1);
    Scalar value;
    if (!Value(value, depth + 1)) return false;
    if (place == JsonScope::kTop) HandleTopLevel(key, value);
    if (place != JsonScope::kElsewhere) HandleMetric(key, value);
    return true;
  }

  bool Array(int depth) {
    if (!Consume('[') || depth > kMaxDepth) return false;
    SkipSpace();
    if (Consume(']')) return true;
    do {
      Scalar value;
      SkipSpace();
      if (!Value(value, depth + 1)) return false;
      SkipSpace();
    } while (Consume(','));
    return Consume(']');
  }

  bool Value(Scalar& value, int depth) {
    value.kind = Scalar::Kind::kComposite;
    switch (Peek()) {
      case '{': return Object(JsonScope::kElsewhere, depth);
      case '[': return Array(depth);
      case '"': return String(value);
      default: return Token(value);
    }
  }

  bool String(Scalar& value) {
    if (!Consume('"')) return false;
    const size_t begin = at_;
    for (; at_ < line_.size() && line_[at_] != '"'; ++at_) {
      if (line_[at_] == '\\' && !Escape()) return false;
    }
    value = {Scalar::Kind::kString, line_.substr(begin, at_ - begin)};
    return Consume('"');
  }

  // Leaves at_ on the last character of the escape.
  bool Escape() {
    ++at_;
    if (at_ >= line_.size()) return false;
    if (line_[at_] != 'u') return true;
    for (int i = 0; i < 4; ++i) {
      ++at_;
      if (at_ >= line_.size() || !IsHex(line_[at_])) return false;
    }
    return true;
  }

  // A number or a word.
  bool Token(Scalar& value) {
    const size_t begin = at_;
    while (at_ < line_.size() && IsTokenByte(line_[at_])) ++at_;
    value.raw = line_.substr(begin, at_ - begin);
    value.kind = value.raw == "null"    ? Scalar::Kind::kNull
                 : value.raw == "true"  ? Scalar::Kind::kTrue
                 : value.raw == "false" ? Scalar::Kind::kFalse
                                        : Scalar::Kind::kNumber;
    return value.kind != Scalar::Kind::kNumber || ParseNumber(value.raw).has_value();
  }

  void HandleTopLevel(std::string_view key, const Scalar& value) {
    if (key == wanted_.step) HandleStep(value);
    if (key == "timestamp") HandleTime(value);
    if (key == "done" && value.kind == Scalar::Kind::kTrue) out_.done = true;
  }

  void HandleStep(const Scalar& value) {
    if (value.kind == Scalar::Kind::kNull) return;
    const std::optional<double> number = Number(value);
    step_ok_ = number && *number >= 0 && *number < 0x1p62 &&
               *number == static_cast<double>(static_cast<int64_t>(*number));
    if (step_ok_) {
      step_ = static_cast<int64_t>(*number);
    } else {
      Bad(wanted_.step, value, "not a whole number from 0");
    }
  }

  void HandleTime(const Scalar& value) {
    if (value.kind == Scalar::Kind::kString) time_ = ParseTime(value.raw);
    const std::optional<double> seconds = Number(value);
    if (seconds && *seconds >= 0 && *seconds <= kMaxUnixSeconds) {
      time_ = absl::UnixEpoch() + absl::Seconds(*seconds);
    }
  }

  void HandleMetric(std::string_view key, const Scalar& value) {
    const int metric = FindMetric(wanted_.metrics, key);
    if (metric < 0 || value.kind == Scalar::Kind::kNull) return;
    if (const std::optional<double> number = Number(value)) {
      out_.observations.push_back({metric, *number, std::nullopt, std::nullopt});
    } else {
      Bad(key, value,
          value.kind == Scalar::Kind::kString ? WhyNotNumber(value.raw) : "not a number");
    }
  }

  static std::optional<double> Number(const Scalar& value) {
    if (value.kind == Scalar::Kind::kNumber) return ParseNumber(value.raw);
    if (value.kind != Scalar::Kind::kString) return std::nullopt;
    std::string_view text = value.raw;
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
    return ParseNumber(text);
  }

  void Bad(std::string_view key, const Scalar& value, const std::string& why) {
    if (!out_.bad.empty()) return;
    const std::string shown =
        value.kind == Scalar::Kind::kComposite ? "an object or list" : Excerpt(value.raw, 40);
    out_.bad = absl::StrCat("\"", Excerpt(key, 40), "\" is ", shown, ": ", why);
  }

  char Peek() const { return at_ < line_.size() ? line_[at_] : '\0'; }

  bool Consume(char c) {
    if (at_ >= line_.size() || line_[at_] != c) return false;
    ++at_;
    return true;
  }

  void SkipSpace() {
    while (at_ < line_.size() && (line_[at_] == ' ' || line_[at_] == '\t' || line_[at_] == '\r'))
      ++at_;
  }

  const Wanted& wanted_;
  const std::string_view line_;
  ParsedLine& out_;
  size_t at_ = 0;
  std::optional<int64_t> step_;
  std::optional<absl::Time> time_;
  bool step_ok_ = true;
};

// Without a byte order mark, and without the zero bytes that a file has where its writer jumped
// ahead after it was truncated.
std::string_view Contents(std::string_view line) {
  if (line.substr(0, 3) == "\xef\xbb\xbf") line.remove_prefix(3);
  const size_t begin = line.find_first_not_of(std::string_view("\0 \t\r", 4));
  return begin == std::string_view::npos ? std::string_view() : line.substr(begin);
}

class JsonParser : public LineParser {
 public:
  explicit JsonParser(Scanner::Wanted wanted) : wanted_(std::move(wanted)) {}

  void Parse(std::string_view line, ParsedLine& out) const override {
    out.Clear();
    line = Contents(line);
    if (line.empty()) return;
    Scanner scanner(wanted_, line, out);
    if (scanner.Line()) return;
    out.Clear();
    out.bad = absl::StrCat(Excerpt(line), ": not a JSON object (byte ", scanner.at() + 1, ")");
  }

  // A carriage return is white space in JSON.
  bool ReturnEndsLine() const override { return false; }

 private:
  const Scanner::Wanted wanted_;
};

}  // namespace

std::unique_ptr<LineParser> MakeJsonParser(std::vector<std::string> metrics) {
  return std::make_unique<JsonParser>(Scanner::Wanted{std::move(metrics), "step"});
}

std::unique_ptr<LineParser> MakeHypertuneParser(std::vector<std::string> metrics) {
  return std::make_unique<JsonParser>(Scanner::Wanted{std::move(metrics), "global_step"});
}

}  // namespace shirabe::metrics
