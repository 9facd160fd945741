// Finds functions without a compiler: at the scope of a file, namespace or class every statement
// ends in a ';', or in a '{' that opens a scope, a body or an initialiser. What stands before that
// character, the header, tells which. Bodies are skipped whole: a lambda is part of its function.
#include <array>
#include <cctype>
#include <optional>

#include "tests/tidy/source.h"

namespace shirabe::tidy {
namespace {

bool IsWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }
bool IsSpace(char c) { return std::isspace(static_cast<unsigned char>(c)); }

// The offset after the bracket that closes the one at `open`; npos if none does.
size_t AfterMatch(std::string_view code, size_t open) {
  const char left = code[open];
  const char right = left == '(' ? ')' : left == '{' ? '}' : ']';
  int depth = 0;
  for (size_t i = open; i < code.size(); ++i) {
    if (code[i] == left) ++depth;
    if (code[i] == right && --depth == 0) return i + 1;
  }
  return std::string_view::npos;
}

size_t SkipSpace(std::string_view code, size_t at) {
  while (at < code.size() && IsSpace(code[at])) ++at;
  return at;
}

std::string_view WordBefore(std::string_view code, size_t at) {
  while (at > 0 && IsSpace(code[at - 1])) --at;
  size_t first = at;
  while (first > 0 && IsWord(code[first - 1])) --first;
  return code.substr(first, at - first);
}

std::string_view WordAt(std::string_view code, size_t at) {
  size_t end = at;
  while (end < code.size() && IsWord(code[end])) ++end;
  return code.substr(at, end - at);
}

// After `<` at `open`, its `>`; comparisons do not occur where this is used.
size_t AfterAngles(std::string_view code, size_t open) {
  int depth = 0;
  for (size_t i = open; i < code.size(); ++i) {
    if (code[i] == '(') {
      i = AfterMatch(code, i);
      if (i == std::string_view::npos) return i;
      --i;
    } else if (code[i] == '<') {
      ++depth;
    } else if (code[i] == '>' && code[i - 1] != '-' && --depth == 0) {
      return i + 1;
    }
  }
  return std::string_view::npos;
}

// The header without template<…>, [[…]] and extern "…" in front.
std::string_view Strip(std::string_view header) {
  for (;;) {
    header.remove_prefix(SkipSpace(header, 0));
    size_t cut = 0;
    if (header.substr(0, 2) == "[[") {
      cut = AfterMatch(header, 0);
    } else if (WordAt(header, 0) == "template" && header.find('<') != std::string_view::npos) {
      cut = AfterAngles(header, header.find('<'));
    } else if (WordAt(header, 0) == "extern" && header.find('"') != std::string_view::npos) {
      cut = header.find('"', header.find('"') + 1) + 1;
    }
    if (cut == 0 || cut == std::string_view::npos) return header;
    header.remove_prefix(cut);
  }
}

int CountParameters(std::string_view list) {
  int commas = 0;
  bool any = false;
  for (size_t i = 0; i < list.size(); ++i) {
    const char c = list[i];
    any = any || !IsSpace(c);
    size_t after = i + 1;
    if (c == '(' || c == '[' || c == '{') after = AfterMatch(list, i);
    if (c == '<') after = AfterAngles(list, i);
    if (c == ',') ++commas;
    if (after == std::string_view::npos) break;
    i = after - 1;
  }
  const size_t first = SkipSpace(list, 0);
  const bool is_void = WordAt(list, first) == "void" && SkipSpace(list, first + 4) == list.size();
  return any && !is_void ? commas + 1 : 0;
}

struct Signature {
  std::string name;
  std::string_view parameters;
  size_t end = 0;  // after the ')'
};

bool TakesParentheses(std::string_view word) {
  static constexpr std::array kWords = {"decltype", "alignas",       "noexcept", "explicit",
                                        "requires", "__attribute__", "sizeof",   "typeof"};
  for (const char* known : kWords) {
    if (word == known) return true;
  }
  return false;
}

// Where the parameters of `operator…` begin, for the word operator at `at`.
size_t OperatorParameters(std::string_view header, size_t at) {
  at = SkipSpace(header, at + 8);
  if (header.substr(at, 2) == "()") at += 2;
  return header.find('(', at);
}

Signature MakeSignature(std::string_view header, size_t open, std::string_view name) {
  const size_t end = AfterMatch(header, open);
  return {std::string(name), header.substr(open + 1, end - open - 2), end};
}

// The parameter list of a header, if it is a function's.
std::optional<Signature> FindSignature(std::string_view header) {
  for (size_t i = 0; i < header.size();) {
    const char c = header[i];
    if (IsWord(c)) {
      const std::string_view word = WordAt(header, i);
      if (word == "operator") {
        const size_t open = OperatorParameters(header, i);
        if (open == std::string_view::npos) return std::nullopt;
        return MakeSignature(header, open, "operator");
      }
      i += word.size();
    } else if (c == '=' || c == '{') {
      return std::nullopt;  // a value, an alias, an enumeration
    } else if (c == '<') {
      i = AfterAngles(header, i);
    } else if (c == '[') {
      i = AfterMatch(header, i);
    } else if (c == '(') {
      const std::string_view word = WordBefore(header, i);
      const size_t first = SkipSpace(header, i + 1);
      const bool pointer = first < header.size() && (header[first] == '*' || header[first] == '&');
      if (!word.empty() && !pointer && !TakesParentheses(word)) {
        return MakeSignature(header, i, word);
      }
      const size_t next = AfterMatch(header, i);
      if (pointer && next != std::string_view::npos) {
        const size_t open = SkipSpace(header, next);
        if (open < header.size() && header[open] == '(') {
          return MakeSignature(header, open, WordAt(header, SkipSpace(header, first + 1)));
        }
      }
      i = next;
    } else {
      ++i;
    }
  }
  return std::nullopt;
}

bool IsMacroName(std::string_view name) {
  for (char c : name) {
    if (std::islower(static_cast<unsigned char>(c))) return false;
  }
  return name.size() > 1;
}

bool IsScope(std::string_view header) {
  const std::string_view bare = Strip(header);
  if (bare.empty()) return header.find('"') != std::string_view::npos;  // extern "C" {
  for (const char* word : {"namespace", "inline namespace"}) {
    if (bare.substr(0, std::string_view(word).size()) == word) return true;
  }
  const std::string_view word = WordAt(bare, 0);
  const bool type = word == "class" || word == "struct" || word == "union" || word == "typedef";
  return type && bare.find('(') == std::string_view::npos && bare.find('=') == bare.npos &&
         bare.find("enum") == bare.npos;
}

// Whether `{` after this header, which has a signature, is the body: in a constructor's list of
// initialisers `member{` is not.
bool OpensBody(std::string_view header, const Signature& signature) {
  const std::string_view rest = header.substr(signature.end);
  bool initialisers = false;
  for (size_t i = 0; i < rest.size(); ++i) {
    if (rest[i] != ':') continue;
    if (i + 1 < rest.size() && rest[i + 1] == ':') {
      ++i;
    } else {
      initialisers = true;
      break;
    }
  }
  if (!initialisers) return true;
  const size_t last = rest.find_last_not_of(" \t\n");
  return rest[last] == ')' || rest[last] == '}';
}

bool IsLambdaValue(std::string_view header) {
  const size_t equals = header.find('=');
  if (equals == std::string_view::npos) return false;
  const size_t next = SkipSpace(header, equals + 1);
  return next < header.size() && header[next] == '[';
}

// Of `class ATTRIBUTE Name final : public Base`.
std::string NameOfType(std::string_view header) {
  const size_t colon = header.find(':');
  std::string_view name =
      WordBefore(header, colon == std::string_view::npos ? header.size() : colon);
  if (name == "final") name = WordBefore(header, static_cast<size_t>(name.data() - header.data()));
  return std::string(name);
}

// Whether a statement of a class that declares no function declares a field that can be changed.
bool IsMutableField(std::string_view statement) {
  static constexpr std::array kOther = {"using",  "typedef", "friend",   "static_assert", "enum",
                                        "class",  "struct",  "union",    "constexpr",     "public",
                                        "static", "private", "protected"};
  const std::string_view first = WordAt(statement, 0);
  for (const char* word : kOther) {
    if (first == word) return false;
  }
  if (first.empty() || IsMacroName(first))
    return !first.empty() && statement.find('(') == statement.npos;
  const bool pointer = statement.find('*') != std::string_view::npos;
  if (pointer) return statement.find("* const ") == std::string_view::npos;
  return first != "const";
}

class Finder {
 public:
  explicit Finder(const Source& source) : source_(source), code_(WithoutDirectives(source)) {}

  Functions Run() {
    while (at_ < code_.size() && result_.lost_at == 0) Step();
    if (result_.lost_at == 0 && !scopes_.empty()) result_.lost_at = source_.lines();
    return std::move(result_);
  }

 private:
  std::string_view Header() const { return std::string_view(code_).substr(start_, at_ - start_); }

  void Step() {
    switch (code_[at_]) {
      case '(':
      case '[': return Skip();
      case '{': return Open();
      case '}': return Close();
      case ';': return Declare();
      case ':': return Label();
      default: ++at_;
    }
  }

  void Skip() {
    const size_t after = AfterMatch(code_, at_);
    if (after == std::string::npos) result_.lost_at = source_.LineOf(at_);
    at_ = after;
  }

  void Next() { start_ = ++at_; }

  void Open() {
    const std::string_view header = Header();
    if (IsScope(header)) {
      OpenScope(Strip(header));
      return Next();
    }
    const auto signature = FindSignature(Strip(header));
    const bool body = signature ? OpensBody(Strip(header), *signature) : IsLambdaValue(header);
    Skip();
    if (!body || result_.lost_at != 0) return;
    Record(signature.value_or(Signature{"lambda", "", 0}), true);
    start_ = at_;
  }

  void Close() {
    if (scopes_.empty()) {
      result_.lost_at = source_.LineOf(at_);
    } else {
      scopes_.pop_back();
    }
    Next();
  }

  void OpenScope(std::string_view header) {
    const std::string_view word = WordAt(header, 0);
    if (word != "class" && word != "struct") return scopes_.push_back({});
    const bool is_struct = word == "struct";
    const int line = source_.LineOf(SkipSpace(code_, start_));
    scopes_.push_back({static_cast<int>(result_.classes.size()), is_struct});
    result_.classes.push_back({NameOfType(header), line, is_struct, 0, {}});
  }

  // The class whose members stand here; null outside of one.
  Class* Here() {
    const bool inside = !scopes_.empty() && scopes_.back().type >= 0;
    return inside ? &result_.classes[static_cast<size_t>(scopes_.back().type)] : nullptr;
  }

  void Declare() {
    const std::string_view header = Strip(Header());
    const auto signature = FindSignature(header);
    if (signature && !IsMacroName(signature->name) && signature->name != "static_assert") {
      Record(*signature, false);
    } else if (Here() != nullptr && scopes_.back().is_public && IsMutableField(header)) {
      Here()->public_fields.push_back(source_.LineOf(SkipSpace(code_, start_)));
    }
    Next();
  }

  // public: and its like begin a new statement.
  void Label() {
    const size_t first = SkipSpace(code_, start_);
    const std::string_view word = WordAt(code_, first);
    if (word == "public" || word == "private" || word == "protected") {
      if (!scopes_.empty()) scopes_.back().is_public = word == "public";
      return Next();
    }
    ++at_;
  }

  void Record(const Signature& signature, bool defined) {
    Function function;
    function.name = signature.name;
    function.first_line = source_.LineOf(SkipSpace(code_, start_));
    function.last_line = source_.LineOf(at_ - (defined ? 1 : 0));
    function.parameters = IsMacroName(signature.name) ? 0 : CountParameters(signature.parameters);
    function.defined = defined;
    CountMethod(function.name);
    result_.found.push_back(std::move(function));
  }

  void CountMethod(const std::string& name) {
    Class* type = Here();
    const bool is_friend = WordAt(Strip(Header()), 0) == "friend";
    if (type == nullptr || is_friend || name == type->name || name == "operator") return;
    if (!IsMacroName(name)) ++type->methods;
  }

  struct Scope {
    int type = -1;  // its index among the classes; -1 for a namespace
    bool is_public = false;
  };

  const Source& source_;
  const std::string code_;
  size_t at_ = 0;
  size_t start_ = 0;
  std::vector<Scope> scopes_;
  Functions result_;
};

size_t Indent(std::string_view line) { return line.find_first_not_of(" \t"); }

// The last line of the block whose first line is `first`: that before the next line which is
// indented no deeper, or the `}` that closes it.
int EndOfBlock(const Source& source, int first) {
  const size_t indent = Indent(source.Line(source.code, first));
  int last = first;
  for (int n = first + 1; n <= source.lines(); ++n) {
    const std::string_view line = source.Line(source.code, n);
    const size_t here = Indent(line);
    if (here == std::string_view::npos || line[here] == ')') continue;
    if (here <= indent) return line[here] == '}' ? n : last;
    last = n;
  }
  return last;
}

}  // namespace

Functions FindFunctions(const Source& source) { return Finder(source).Run(); }

Functions FindScriptFunctions(const Source& source) {
  Functions functions;
  for (int n = 1; n <= source.lines(); ++n) {
    const std::string_view line = source.Line(source.code, n);
    const size_t indent = Indent(line);
    if (indent == std::string_view::npos) continue;
    const std::string_view word = WordAt(line, indent);
    const bool python = word == "def" || line.substr(indent, 10) == "async def ";
    const bool shell = !word.empty() && line.substr(indent + word.size(), 4) == "() {";
    if (!python && !shell) continue;
    const std::string_view name = python ? WordAt(line, line.find("def ") + 4) : word;
    functions.found.push_back({std::string(name), n, EndOfBlock(source, n), 0, true});
  }
  return functions;
}

}  // namespace shirabe::tidy
