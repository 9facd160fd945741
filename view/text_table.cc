#include "view/text_table.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

#include "base/status.h"

namespace shirabe::view {
namespace {

constexpr int kGap = 3;

struct Range {
  uint32_t first;
  uint32_t last;
};

// Combining marks, joiners and selectors: they take no column of their own.
constexpr Range kNarrow[] = {
    {0x0300, 0x036F}, {0x0483, 0x0489}, {0x0591, 0x05BD}, {0x0610, 0x061A}, {0x064B, 0x065F},
    {0x0E34, 0x0E3A}, {0x1AB0, 0x1AFF}, {0x1DC0, 0x1DFF}, {0x200B, 0x200F}, {0x20D0, 0x20FF},
    {0x302A, 0x302D}, {0x3099, 0x309A}, {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}, {0xFEFF, 0xFEFF},
};

// East Asian wide and full-width characters, and pictographs: two columns.
constexpr Range kWide[] = {
    {0x1100, 0x115F},   {0x231A, 0x231B},   {0x2E80, 0x3029},   {0x302E, 0x303E},
    {0x3041, 0x3098},   {0x309B, 0x33FF},   {0x3400, 0x4DBF},   {0x4E00, 0x9FFF},
    {0xA000, 0xA4CF},   {0xA960, 0xA97F},   {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},
    {0xFE30, 0xFE6F},   {0xFF01, 0xFF60},   {0xFFE0, 0xFFE6},   {0x1F300, 0x1F64F},
    {0x1F680, 0x1F6FF}, {0x1F900, 0x1F9FF}, {0x20000, 0x3FFFD},
};

template <size_t n>
bool In(const Range (&ranges)[n], uint32_t c) {
  const Range* after =
      std::upper_bound(std::begin(ranges), std::end(ranges), c,
                       [](uint32_t value, const Range& range) { return value < range.first; });
  return after != std::begin(ranges) && c <= std::prev(after)->last;
}

struct Character {
  size_t bytes = 1;
  int columns = 1;
  bool control = false;
};

// The character at the start of `text`, which is not empty.
Character First(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {.bytes = 1, .columns = 1, .control = lead < 0x20 || lead == 0x7F};
  const size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || bytes > text.size()) return {.control = true};
  uint32_t c = lead & (0xFF >> (bytes + 1));
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {.control = true};
    c = c << 6 | (byte(i) & 0x3F);
  }
  if (c < 0xA0) return {.bytes = bytes, .columns = 1, .control = true};
  return {.bytes = bytes, .columns = In(kNarrow, c) ? 0 : In(kWide, c) ? 2 : 1};
}

// Control characters as '?'.
std::string Cleaned(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Character character = First(text);
    if (character.control) {
      out += '?';
    } else {
      out += text.substr(0, character.bytes);
    }
    text.remove_prefix(character.bytes);
  }
  return out;
}

// Nearly every cell is: its width is its size, and nothing in it needs care.
bool IsPlain(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7F; });
}

}  // namespace

std::string Printable(std::string text) {
  if (IsPlain(text)) return text;
  return Cleaned(text);
}

int DisplayWidth(std::string_view text) {
  if (IsPlain(text)) return static_cast<int>(text.size());
  int width = 0;
  while (!text.empty()) {
    const Character character = First(text);
    width += character.columns;
    text.remove_prefix(character.bytes);
  }
  return width;
}

std::string Truncate(std::string_view text, int columns) {
  size_t end = 0;
  while (end < text.size()) {
    const Character character = First(text.substr(end));
    if (character.columns > columns) break;
    columns -= character.columns;
    end += character.bytes;
  }
  return std::string(text.substr(0, end));
}

Table::Table(std::vector<std::string> header)
    : header_(std::move(header)), widths_(header_.size(), 0) {
  for (std::string& cell : header_) cell = Printable(std::move(cell));
}

void Table::Add(std::vector<std::string> cells) {
  CHECK(cells.size() == header_.size());
  for (std::string& cell : cells) cell = cell.empty() ? "-" : Printable(std::move(cell));
  Measure(cells);
  rows_.push_back(std::move(cells));
}

void Table::Measure(const std::vector<std::string>& cells) {
  for (size_t i = 0; i < cells.size(); ++i) {
    widths_[i] = std::max(widths_[i], DisplayWidth(cells[i]));
  }
}

std::string Table::Line(const std::vector<std::string>& cells) const {
  std::string line;
  int blanks = 0;  // owed before the next cell
  for (size_t i = 0; i < cells.size(); ++i) {
    line.append(blanks, ' ').append(cells[i]);
    blanks = widths_[i] - DisplayWidth(cells[i]) + kGap;
  }
  return line + "\n";
}

std::string Table::Render(bool with_header) {
  std::string text;
  if (with_header && !header_taken_ && !rows_.empty()) {
    header_taken_ = true;
    Measure(header_);
    text += Line(header_);
  }
  for (const auto& row : rows_) text += Line(row);
  rows_.clear();
  return text;
}

}  // namespace shirabe::view
