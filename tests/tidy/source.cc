#include "tests/tidy/source.h"

#include <algorithm>
#include <cctype>

namespace shirabe::tidy {
namespace {

// Walks over the text once; each Take… method consumes one token that hides what looks like code.
class Lexer {
 public:
  explicit Lexer(Source& source) : source_(source), text_(source.text) {
    source_.code = text_;
    source_.comments = Blank(text_);
  }

  void Run() {
    while (at_ < text_.size()) {
      if (Starts("//")) {
        TakeLineComment();
      } else if (Starts("/*")) {
        TakeUntil("*/", at_ + 2, true);
      } else if (text_[at_] == '"') {
        TakeString();
      } else if (text_[at_] == '\'' && !InNumber()) {
        TakeQuoted('\'');
      } else {
        ++at_;
      }
    }
  }

  static std::string Blank(std::string text) {
    for (char& c : text) {
      if (c != '\n') c = ' ';
    }
    return text;
  }

 private:
  bool Starts(std::string_view word) const { return text_.compare(at_, word.size(), word) == 0; }

  static bool IsWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

  // What stands directly before `at_` and could belong to the token that begins there.
  std::string Prefix() const {
    size_t first = at_;
    while (first > 0 && (IsWord(text_[first - 1]) || text_[first - 1] == '\'')) --first;
    return text_.substr(first, at_ - first);
  }

  // 1'000: the quote is a digit separator, not the start of a character.
  bool InNumber() const {
    const std::string prefix = Prefix();
    return !prefix.empty() && std::isdigit(static_cast<unsigned char>(prefix[0]));
  }

  // Blanks [first, last) in the code; in a comment it moves to the other layer.
  void Hide(size_t first, size_t last, bool comment) {
    for (size_t i = first; i < std::min(last, text_.size()); ++i) {
      if (text_[i] == '\n') continue;
      if (comment) source_.comments[i] = text_[i];
      source_.code[i] = ' ';
    }
  }

  void TakeUntil(std::string_view end, size_t from, bool comment) {
    const size_t found = text_.find(end, from);
    const size_t next = found == std::string::npos ? text_.size() : found + end.size();
    Hide(at_, next, comment);
    at_ = next;
  }

  // A backslash before the newline continues it.
  void TakeLineComment() {
    size_t end = at_;
    do {
      end = text_.find('\n', end + 1);
    } while (end != std::string::npos && text_[end - 1] == '\\');
    if (end == std::string::npos) end = text_.size();
    Hide(at_, end, true);
    at_ = end;
  }

  void TakeString() {
    const std::string prefix = Prefix();
    if (prefix == "R" || prefix == "u8R" || prefix == "LR" || prefix == "uR" || prefix == "UR") {
      const size_t open = text_.find('(', at_);
      if (open == std::string::npos) return void(++at_);
      return TakeUntil(")" + text_.substr(at_ + 1, open - at_ - 1) + "\"", open, false);
    }
    TakeQuoted('"');
  }

  // The quotes stay, so that "" is still seen to be a string.
  void TakeQuoted(char quote) {
    size_t i = at_ + 1;
    while (i < text_.size() && text_[i] != quote && text_[i] != '\n') {
      i += text_[i] == '\\' ? 2 : 1;
    }
    Hide(at_ + 1, i, false);
    at_ = i + 1;
  }

  Source& source_;
  const std::string& text_;
  size_t at_ = 0;
};

void FindLines(Source& source) {
  source.line_starts = {0};
  for (size_t i = 0; i + 1 < source.text.size(); ++i) {
    if (source.text[i] == '\n') source.line_starts.push_back(i + 1);
  }
  if (source.text.empty()) source.line_starts.clear();
}

Source Begin(std::string path, std::string text) {
  Source source;
  source.path = std::move(path);
  source.text = std::move(text);
  FindLines(source);
  return source;
}

}  // namespace

int Source::LineOf(size_t offset) const {
  const auto after = std::upper_bound(line_starts.begin(), line_starts.end(), offset);
  return static_cast<int>(after - line_starts.begin());
}

std::string_view Source::Line(const std::string& layer, int number) const {
  const size_t first = line_starts[number - 1];
  const size_t last = layer.find('\n', first);
  return std::string_view(layer).substr(first, last == std::string::npos ? last : last - first);
}

Source LexCpp(std::string path, std::string text) {
  Source source = Begin(std::move(path), std::move(text));
  Lexer(source).Run();
  return source;
}

Source LexScript(std::string path, std::string text) {
  Source source = Begin(std::move(path), std::move(text));
  source.code = source.text;
  source.comments = Lexer::Blank(source.text);
  for (int n = 1; n <= source.lines(); ++n) {
    const std::string_view line = source.Line(source.text, n);
    const size_t first = line.find_first_not_of(" \t");
    if (first == std::string_view::npos || line[first] != '#') continue;
    for (size_t i = source.line_starts[n - 1]; i < source.line_starts[n - 1] + line.size(); ++i) {
      std::swap(source.code[i], source.comments[i]);
    }
  }
  return source;
}

std::string WithoutDirectives(const Source& source) {
  std::string code = source.code;
  bool inside = false;
  for (int n = 1; n <= source.lines(); ++n) {
    const std::string_view line = source.Line(source.code, n);
    const size_t first = line.find_first_not_of(" \t");
    inside = inside || (first != std::string_view::npos && line[first] == '#');
    if (inside) {
      for (size_t i = 0; i < line.size(); ++i) code[source.line_starts[n - 1] + i] = ' ';
    }
    inside = inside && !line.empty() && line.back() == '\\';
  }
  return code;
}

Spread SpreadOf(std::vector<int> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  return {values[values.size() / 2], values[values.size() * 9 / 10], values.back()};
}

}  // namespace shirabe::tidy
