#include "trial/gjson/gjson_path.h"

#include <charconv>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/text/json_text.h"

namespace shirabe::trial::gjson {
namespace {

constexpr size_t kMaxConditionBytes = 4096;
constexpr size_t kMaxQuoted = 200;  // of it, in messages
constexpr int kMaxGjsonDepth = 16;  // of queries and lists in one another

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  StatusOr<Path> Whole() {
    if (text_.empty()) return Wrong("is empty; such as status.conditions.#(type==\"Complete\")#");
    if (text_.size() > kMaxConditionBytes) return Wrong("is longer than 4096 bytes");
    ASSIGN_OR_RETURN(Path path, ReadPath(""));
    if (at_ < text_.size()) return Wrong(absl::StrCat("has an unexpected '", Rest(1), "'"));
    return path;
  }

 private:
  bool done() const { return at_ >= text_.size(); }
  char peek() const { return done() ? '\0' : text_[at_]; }
  bool Consume(std::string_view token) {
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }
  bool IsOneOf(std::string_view set) const {
    return !done() && set.find(text_[at_]) != std::string_view::npos;
  }
  void SkipSpaces() {
    while (peek() == ' ') ++at_;
  }
  std::string Rest(size_t most) const { return std::string(text_.substr(at_, most)); }

  Status Wrong(const std::string& what) const {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", std::string(text_.substr(0, kMaxQuoted)), text_.size() > kMaxQuoted ? "…" : "", "\" ",
        what, at_ == 0 ? "" : " at character ", at_ == 0 ? "" : std::to_string(at_ + 1)));
  }

  // Up to one of the characters in `stop`, which is left, or the end.
  StatusOr<Path> ReadPath(std::string_view stop) {
    Path path;
    bool piped = false;
    while (true) {
      ASSIGN_OR_RETURN(Step step, ReadStep(stop));
      step.piped = piped;
      path.push_back(std::move(step));
      if (done() || IsOneOf(stop)) return path;
      if (!IsOneOf(".|")) return Wrong(absl::StrCat("needs '.' or '|' before '", Rest(8), "'"));
      piped = text_[at_++] == '|';
    }
  }

  StatusOr<Step> ReadStep(std::string_view stop) {
    switch (peek()) {
      case '#': return ReadHash(stop);
      case '[': return ReadList();
      case '@': return ReadModifier(stop);
      case '{':
        return Wrong("makes an object with {…}, which is not supported: use [ ] for a list");
      case '!': return Wrong("has a literal, '!', which is not supported: select a field");
      default: return ReadName(stop);
    }
  }

  // Everything else is part of the name, a '(' too.
  StatusOr<Step> ReadName(std::string_view stop) {
    Step step;
    std::string plain;
    while (!done() && !IsOneOf(".|") && !IsOneOf(stop)) {
      const bool escaped = peek() == '\\';
      if (escaped) step.name += text_[at_++];
      if (done()) return Wrong("ends with '\\', which takes the next character as it is");
      step.wildcard |= !escaped && IsOneOf("*?");
      step.name += peek();
      plain += text_[at_++];
    }
    if (!stop.empty()) TrimEnd(plain), TrimEnd(step.name);
    if (plain.empty()) return Wrong("has an empty name");
    if (!step.wildcard) step.name = plain;
    size_t index = 0;
    const char* end = plain.data() + plain.size();
    const auto read = std::from_chars(plain.data(), end, index);
    if (read.ec == std::errc() && read.ptr == end) step.index = index;
    return step;
  }

  static void TrimEnd(std::string& text) {
    while (!text.empty() && text.back() == ' ') text.pop_back();
  }

  StatusOr<Step> ReadModifier(std::string_view stop) {
    const size_t start = at_;
    while (!done() && !IsOneOf(".|") && !IsOneOf(stop)) ++at_;
    std::string name(text_.substr(start, at_ - start));
    TrimEnd(name);
    Step step;
    step.kind = Step::Kind::kThis;
    if (name == "@this") return step;
    at_ = start;
    return Wrong(absl::StrCat("uses the modifier ", name,
                              ", which is not supported: the only one is @this"));
  }

  StatusOr<Step> ReadHash(std::string_view stop) {
    ++at_;
    Step step;
    step.kind = Step::Kind::kEach;
    const char open = peek();
    if (open != '(' && open != '[') {
      if (done() || IsOneOf(".|") || IsOneOf(stop)) return step;
      return Wrong(absl::StrCat("has '#' before '", Rest(8),
                                "': a query is #(name==\"value\"), a length is # alone"));
    }
    ++at_;
    ASSIGN_OR_RETURN(step.query, ReadQuery(open == '(' ? ')' : ']'));
    step.kind = Consume("#") ? Step::Kind::kMatches : Step::Kind::kFirst;
    return step;
  }

  StatusOr<Query> ReadQuery(char close) {
    if (++depth_ > kMaxGjsonDepth) return Wrong("has too many queries in one another");
    Query query;
    const std::string stop = std::string("=!<>%") + close;
    SkipSpaces();
    if (!IsOneOf(stop)) {
      ASSIGN_OR_RETURN(query.path, ReadPath(stop));
    }
    SkipSpaces();
    if (peek() != close) {
      RETURN_IF_ERROR(ReadOperator(query));
      SkipSpaces();
      RETURN_IF_ERROR(ReadValue(close, query.value));
    }
    if (!Consume(std::string_view(&close, 1))) {
      return Wrong(absl::StrCat("has a query without its '", std::string(1, close), "'"));
    }
    if (query.path.empty() && query.op.empty()) return Wrong("has an empty query");
    --depth_;
    return query;
  }

  Status ReadOperator(Query& query) {
    for (const char* op : {"==", "!=", "<=", ">=", "!%", "=", "<", ">", "%"}) {
      if (!Consume(op)) continue;
      query.op = op == std::string_view("=") ? "==" : op;
      return absl::OkStatus();
    }
    if (done()) return absl::OkStatus();  // the missing bracket is what is wrong
    return Wrong("needs one of == != < <= > >= % !%");
  }

  Status ReadValue(char close, std::string& value) {
    if (peek() == '~') return Wrong("has '~', which is not supported: compare with a value");
    if (peek() == '"') return ReadQuoted(value);
    const size_t start = at_;
    while (!done() && peek() != close) ++at_;
    value = std::string(text_.substr(start, at_ - start));
    TrimEnd(value);
    if (value.empty()) return Wrong("has a comparison with nothing");
    return absl::OkStatus();
  }

  Status ReadQuoted(std::string& value) {
    const size_t start = at_++;
    while (!done() && peek() != '"') at_ += peek() == '\\' ? 2 : 1;
    if (done()) return at_ = start, Wrong("has a '\"' that is not closed");
    ++at_;
    const std::string_view quoted = text_.substr(start, at_ - start);
    const auto text = ReadJsonOrDiscarded(quoted);
    if (!text.is_string()) return at_ = start, Wrong("has a text that JSON cannot read");
    value = text.get<std::string>();
    SkipSpaces();
    return absl::OkStatus();
  }

  StatusOr<Step> ReadList() {
    if (++depth_ > kMaxGjsonDepth) return Wrong("has too many lists in one another");
    Step step;
    step.kind = Step::Kind::kList;
    do {
      ++at_;  // the bracket or the comma
      ASSIGN_OR_RETURN(Path path, ReadPath(",]"));
      step.paths.push_back(std::move(path));
    } while (peek() == ',');
    if (!Consume("]")) return Wrong("has a list without its ']'");
    --depth_;
    return step;
  }

  const std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

StatusOr<Path> Parse(std::string_view text) { return Parser(text).Whole(); }

// The last star is remembered: what follows it is tried at one place after another.
bool Like(std::string_view text, std::string_view pattern) {
  size_t t = 0, p = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    const bool escaped = p + 1 < pattern.size() && pattern[p] == '\\';
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() &&
               (escaped ? pattern[p + 1] == text[t] : pattern[p] == '?' || pattern[p] == text[t])) {
      p += escaped ? 2 : 1;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace shirabe::trial::gjson
