#include "tests/tidy/rules.h"

#include <re2/re2.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"

namespace shirabe::tidy {
namespace {

constexpr int kMaxColumns = 100;
constexpr int kMaxFunctionLines = 70;
constexpr int kMaxParameters = 4;
constexpr int kMaxMethods = 29;
constexpr int kMaxFileLines = 400;
constexpr int kMaxTestFileLines = 600;
constexpr int kMaxInterfaceLines = 150;
constexpr int kMaxHeaderLines = 300;
constexpr int kMinProsePercent = 25;

// The folders whose headers are the interfaces of the house.
constexpr const char* kInterfaceFolders[] = {"suggestion", "trial",   "metrics", "db",
                                             "experiment", "service", "client",  "view"};
// One long header, because the whole contract of the store must stand in one place.
constexpr const char* kLongInterface = "db/store.h";

bool EndsWith(const std::string& text, const char* end) { return absl::EndsWith(text, end); }

std::string Folder(const std::string& path) {
  const size_t cut = path.rfind('/');
  return cut == std::string::npos ? "" : path.substr(0, cut);
}

// In characters, not bytes.
int Columns(std::string_view line) {
  return static_cast<int>(
      std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

bool IsBlank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

int ProsePercent(const Source& source) {
  int lines = 0;
  int prose = 0;
  for (int n = 1; n <= source.lines(); ++n) {
    lines += IsBlank(source.Line(source.text, n)) ? 0 : 1;
    prose += IsBlank(source.Line(source.comments, n)) ? 0 : 1;
  }
  return lines == 0 ? 100 : prose * 100 / lines;
}

// A header that declares a class for others to implement.
bool IsInterface(const Source& source) {
  const std::string top = source.path.substr(0, source.path.find('/'));
  const bool ours = std::find_if(std::begin(kInterfaceFolders), std::end(kInterfaceFolders),
                                 [&](const char* folder) { return top == folder; }) !=
                    std::end(kInterfaceFolders);
  return ours && absl::StrContains(source.code, "virtual ") &&
         absl::StrContains(source.code, "= 0;");
}

// The offset of the ';' that ends the statement at `first`: the next one outside of brackets.
size_t EndOfStatement(const std::string& code, size_t first) {
  int depth = 0;
  for (size_t i = first; i < code.size(); ++i) {
    if (code[i] == '(' || code[i] == '{') ++depth;
    if (code[i] == ')' || code[i] == '}') --depth;
    if (code[i] == ';' && depth == 0) return i;
  }
  return code.size();
}

bool HoldsVariants(const std::string& path) {
  for (const char* folder :
       {"suggestion/algorithms", "suggestion/stoppers", "metrics/collectors", "trial/executors"}) {
    if (Folder(path) == folder) return EndsWith(path, ".cc");
  }
  return false;
}

}  // namespace

Kind KindOf(const std::string& path, const std::string& text) {
  Kind kind;
  kind.header = EndsWith(path, ".h") || EndsWith(path, ".cuh");
  kind.cpp = kind.header || EndsWith(path, ".cc") || EndsWith(path, ".c") || EndsWith(path, ".cu");
  kind.proto = EndsWith(path, ".proto");
  kind.script = EndsWith(path, ".sh") || EndsWith(path, ".py") || text.substr(0, 2) == "#!";
  kind.text = EndsWith(path, ".md") || EndsWith(path, ".yaml") || EndsWith(path, ".txt") ||
              EndsWith(path, ".cmake") || EndsWith(path, ".json");
  kind.test = path.substr(0, 6) == "tests/" || path.substr(0, 6) == "bench/";
  return kind;
}

Source Lex(const std::string& path, const std::string& text) {
  const Kind kind = KindOf(path, text);
  if (kind.cpp || kind.proto) return LexCpp(path, text);
  return LexScript(path, kind.script || kind.text ? text : "");
}

void CheckLines(const Source& source, Violations& out) {
  const Kind kind = KindOf(source.path, source.text);
  if (!kind.cpp && !kind.proto && !kind.script) return;
  for (int n = 1; n <= source.lines(); ++n) {
    const std::string_view line = source.Line(source.text, n);
    if (Columns(line) > kMaxColumns) {
      out.push_back(
          {source.path, n, absl::StrFormat("%d columns, at most %d", Columns(line), kMaxColumns)});
    }
    if (!line.empty() && IsBlank(line.substr(line.size() - 1))) {
      out.push_back({source.path, n, "blanks at the end of the line"});
    }
  }
  const int most = kind.test ? kMaxTestFileLines : kMaxFileLines;
  // The specification's messages mirror another project's and stay together.
  if (source.lines() > most && !kind.proto) {
    out.push_back({source.path, source.lines(),
                   absl::StrFormat("%d lines in the file, at most %d", source.lines(), most)});
  }
}

void CheckFunctions(const Source& source, Violations& out) {
  const Kind kind = KindOf(source.path, source.text);
  if (!kind.cpp && !kind.script) return;
  const Functions functions = kind.cpp ? FindFunctions(source) : FindScriptFunctions(source);
  if (functions.lost_at != 0) {
    out.push_back({source.path, functions.lost_at, "brackets do not match here"});
  }
  for (const Function& function : functions.found) {
    if (function.lines() > kMaxFunctionLines) {
      out.push_back({source.path, function.first_line,
                     absl::StrFormat("%s has %d lines, at most %d", function.name, function.lines(),
                                     kMaxFunctionLines)});
    }
    if (function.parameters > kMaxParameters) {
      out.push_back({source.path, function.first_line,
                     absl::StrFormat("%s has %d parameters, at most %d, else a struct",
                                     function.name, function.parameters, kMaxParameters)});
    }
  }
}

void CheckClasses(const Source& source, Violations& out) {
  const Kind kind = KindOf(source.path, source.text);
  if (!kind.cpp || kind.test) return;
  for (const Class& type : FindFunctions(source).classes) {
    if (type.methods > kMaxMethods) {
      out.push_back(
          {source.path, type.line,
           absl::StrFormat("%s has %d methods, at most %d", type.name, type.methods, kMaxMethods)});
    }
    if (type.is_struct) continue;
    for (const int line : type.public_fields) {
      out.push_back(
          {source.path, line,
           "a public field of class " + type.name + ": make it private, or the class a struct"});
    }
  }
}

// A mutex guards something, which says so: clang checks its uses then. One that guards no field
// keeps calls apart, and a comment on its line says which: "// serialises …".
void CheckMutexes(const Source& source, Violations& out) {
  static const RE2 mutex(R"(^\s*(?:(?:mutable|static) )*Mutex (\w+);)");
  const Kind kind = KindOf(source.path, source.text);
  if (!kind.cpp || kind.test) return;
  for (int n = 1; n <= source.lines(); ++n) {
    std::string name;
    if (!RE2::PartialMatch(std::string(source.Line(source.code, n)), mutex, &name)) continue;
    const bool guards =
        RE2::PartialMatch(source.code, "GUARDED_BY\\((?:[^()]*\\W)?" + name + "\\)");
    if (guards || source.Line(source.comments, n).find("serialises ") != std::string_view::npos)
      continue;
    out.push_back(
        {source.path, n, name + " guards nothing: ABSL_GUARDED_BY, or \"// serialises …\""});
  }
}

void CheckHeader(const Source& source, Violations& out) {
  if (!KindOf(source.path, source.text).header) return;
  if (!absl::StrContains(source.code, "#pragma once")) {
    out.push_back({source.path, 1, "a header without #pragma once"});
  }
  if (source.lines() > 0 && IsBlank(source.Line(source.comments, 1))) {
    out.push_back({source.path, 1, "a header opens with what it is, who calls it, and how"});
  }
  if (source.lines() > kMaxHeaderLines) {
    out.push_back(
        {source.path, source.lines(),
         absl::StrFormat("%d lines in a header, at most %d", source.lines(), kMaxHeaderLines)});
  }
  if (!IsInterface(source)) return;
  if (source.lines() > kMaxInterfaceLines && source.path != kLongInterface) {
    out.push_back({source.path, source.lines(),
                   absl::StrFormat("%d lines in an interface header, at most %d", source.lines(),
                                   kMaxInterfaceLines)});
  }
  if (ProsePercent(source) < kMinProsePercent) {
    out.push_back({source.path, 1,
                   absl::StrFormat("%d%% of an interface header is prose, at least %d%%",
                                   ProsePercent(source), kMinProsePercent)});
  }
}

void CheckRegistration(const Source& source, Violations& out) {
  if (!HoldsVariants(source.path)) return;
  const std::string word = "SHIRABE_REGISTER(";
  const size_t first = source.code.find(word);
  // A variant needs no header, since nobody but the registry knows it; what has a header is a
  // helper and does not register. Whether it has one is seen in the tree: tree_test.cc.
  if (first == std::string::npos) return;
  if (source.code.find(word, first + 1) != std::string::npos) {
    out.push_back({source.path, source.LineOf(first), "one registration a file"});
  }
  if (source.code.find(';', EndOfStatement(source.code, first) + 1) != std::string::npos) {
    out.push_back({source.path, source.LineOf(first), "the registration is not the last line"});
  }
}

void CheckScript(const Source& source, bool executable, Violations& out) {
  if (!KindOf(source.path, source.text).script) return;
  const bool shebang = source.text.substr(0, 2) == "#!";
  if (executable != shebang) {
    out.push_back(
        {source.path, 1,
         executable ? "executable, but without a #! line" : "a #! line, but not executable"});
  }
  const std::string first(source.lines() > 0 ? source.Line(source.text, 1) : "");
  if (shebang && EndsWith(first, "bash") &&
      !absl::StrContains(source.code, "\nset -euo pipefail\n")) {
    out.push_back({source.path, 1, "a bash script without set -euo pipefail"});
  }
}

Violations CheckFile(const Source& source, bool executable) {
  Violations out;
  CheckLines(source, out);
  CheckFunctions(source, out);
  CheckClasses(source, out);
  CheckMutexes(source, out);
  CheckHeader(source, out);
  CheckIncludes(source, out);
  CheckBans(source, out);
  CheckKernels(source, out);
  CheckRegistration(source, out);
  CheckScript(source, executable, out);
  return out;
}

std::string Format(const Violations& violations) {
  std::string text;
  for (const Violation& v : violations) {
    text += absl::StrFormat("%s:%d: %s\n", v.path, v.line, v.message);
  }
  return text;
}

}  // namespace shirabe::tidy
