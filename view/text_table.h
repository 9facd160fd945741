// Text in columns, as kubectl prints it: three blanks between columns, no blanks at the end of a
// line. Widths are those on a terminal (a wide character counts two, an accent none), and control
// characters are shown as '?', so that no log line or label can steer the terminal. Not
// thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shirabe::view {

// Columns that `text` takes on a terminal. What is no UTF-8 counts one a byte.
int DisplayWidth(std::string_view text);
// The longest start of `text` that takes at most `columns`.
std::string Truncate(std::string_view text, int columns);

// `text` with every control character, and every byte that is no UTF-8, as '?'.
std::string Printable(std::string text);

class Table {
 public:
  explicit Table(std::vector<std::string> header);

  // As many cells as the header has. An empty cell is shown as "-".
  void Add(std::vector<std::string> cells);

  // The rows added since the last call, the header before the first of them: a table without rows
  // is empty. Columns only grow, so that a table that is printed bit by bit stays aligned.
  std::string Render(bool with_header = true);

 private:
  void Measure(const std::vector<std::string>& cells);
  std::string Line(const std::vector<std::string>& cells) const;

  std::vector<std::string> header_;
  std::vector<std::vector<std::string>> rows_;
  std::vector<int> widths_;
  bool header_taken_ = false;
};

}  // namespace shirabe::view
