// A source file cut into layers that have the same offsets as its text: in `code`, comments and the
// contents of strings and characters are blanks; in `comments`, everything else is. Rules then look
// for words without being fooled by prose, strings or raw strings. Used by the tidy test alone.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shirabe::tidy {

struct Source {
  std::string path;  // relative to the root of the tree
  std::string text;
  std::string code;
  std::string comments;
  std::vector<size_t> line_starts;

  int lines() const { return static_cast<int>(line_starts.size()); }
  // From 1.
  int LineOf(size_t offset) const;
  // Line `number`, from 1, of one of the layers, without its newline.
  std::string_view Line(const std::string& layer, int number) const;
};

// Understands // and /* */, strings, raw strings, characters, and digit separators.
Source LexCpp(std::string path, std::string text);
// Only # comments are told apart; strings stay in the code.
Source LexScript(std::string path, std::string text);

// The same text with preprocessor directives, their continuations included, blanked.
std::string WithoutDirectives(const Source& source);

// A function of C++ or C, found by its braces or, where it is only declared, by its semicolon.
struct Function {
  std::string name;
  int first_line = 0;
  int last_line = 0;
  int parameters = 0;
  bool defined = false;
  int lines() const { return last_line - first_line + 1; }
};

// A class or struct of C++ that is defined there.
struct Class {
  std::string name;
  int line = 0;
  bool is_struct = false;
  int methods = 0;                 // constructors, destructor, operators and friends not counted
  std::vector<int> public_fields;  // lines of those that can be changed
};

struct Functions {
  std::vector<Function> found;
  std::vector<Class> classes;
  int lost_at = 0;  // the line where braces or parentheses stopped to match; 0 = nowhere
};

Functions FindFunctions(const Source& source);
// `def` of Python and `name() {` of shell; parameters are not counted.
Functions FindScriptFunctions(const Source& source);

// The shapes of a tree, for the report.
struct Spread {
  int median = 0;
  int p90 = 0;
  int max = 0;
};
Spread SpreadOf(std::vector<int> values);

}  // namespace shirabe::tidy
