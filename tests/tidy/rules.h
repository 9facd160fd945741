// The rules of the house, each a function over one file. tree_test.cc applies them to every file of
// the checkout; rules_test.cc plants violations and sees them found.
#pragma once

#include <string>
#include <vector>

#include "tests/tidy/source.h"

namespace shirabe::tidy {

struct Violation {
  std::string path;
  int line = 0;
  std::string message;
};
using Violations = std::vector<Violation>;

// What a path says about a file.
struct Kind {
  bool cpp = false;     // .h .cc .c .cu
  bool header = false;  // .h
  bool proto = false;
  bool script = false;  // shell or Python
  bool text = false;    // anything else that people write: only words are checked
  bool test = false;    // under tests/ or bench/: may use clocks, may be longer
};
Kind KindOf(const std::string& path, const std::string& text);

// Lexes by kind; a file of no known kind is empty.
Source Lex(const std::string& path, const std::string& text);

void CheckLines(const Source& source, Violations& out);
void CheckFunctions(const Source& source, Violations& out);
void CheckClasses(const Source& source, Violations& out);
void CheckMutexes(const Source& source, Violations& out);
void CheckHeader(const Source& source, Violations& out);
void CheckIncludes(const Source& source, Violations& out);
void CheckBans(const Source& source, Violations& out);
void CheckKernels(const Source& source, Violations& out);
void CheckRegistration(const Source& source, Violations& out);
void CheckScript(const Source& source, bool executable, Violations& out);

// The paths that a file includes, ours and others', in order.
std::vector<std::string> IncludesOf(const Source& source);

// What no file shows by itself: cycles of includes, and folders with too many files.
void CheckTree(const std::vector<const Source*>& sources, Violations& out);

// All that concern one file.
Violations CheckFile(const Source& source, bool executable);

std::string Format(const Violations& violations);

}  // namespace shirabe::tidy
