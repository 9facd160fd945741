// YAML text from a tree of values. Quotes whatever any YAML 1.1 or 1.2 reader might take for
// something else than the text it is.
#include <algorithm>
#include <cstdint>
#include <cstdio>

#include "base/text/json_text.h"
#include "base/text/number.h"
#include "base/text/yaml_tree.h"
#include "experiment/spec/message_tree.h"

namespace shirabe::experiment {
namespace {

constexpr size_t kMaxSimpleKey = 256;  // characters; libyaml stops at 1024
constexpr uint32_t kReplacement = 0xFFFD;

// The character at `i`, and `i` moved past it; U+FFFD for a byte that is not UTF-8.
uint32_t NextCharacter(std::string_view text, size_t& i) {
  const auto byte = [&](size_t k) { return static_cast<unsigned char>(text[k]); };
  const uint32_t lead = byte(i++);
  if (lead < 0x80) return lead;
  const int more = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
  if (lead < 0xC2 || lead > 0xF4 || i + more > text.size()) return kReplacement;
  uint32_t character = lead & (0x3F >> more);
  for (int k = 0; k < more; ++k) {
    if ((byte(i + k) & 0xC0) != 0x80) return kReplacement;
    character = character << 6 | (byte(i + k) & 0x3F);
  }
  constexpr uint32_t kLeast[] = {0x80, 0x800, 0x10000};
  const bool surrogate = character >= 0xD800 && character <= 0xDFFF;
  if (character < kLeast[more - 1] || surrogate || character > 0x10FFFF) return kReplacement;
  i += more;
  return character;
}

// Characters that may stand in YAML as they are and that people can see.
bool IsPrintable(uint32_t c) {
  return (c >= 0x20 && c <= 0x7E) || (c >= 0xA1 && c <= 0x1FFF) || (c >= 0x2030 && c <= 0xD7FF) ||
         (c >= 0xF900 && c < kReplacement && c != 0xFEFF) || (c >= 0x10000 && c <= 0x10FFFF);
}

void AppendEscaped(std::string& out, uint32_t c) {
  char buffer[16];
  if (c == '\n') {
    out += "\\n";
  } else if (c == '\t') {
    out += "\\t";
  } else if (c == '\r') {
    out += "\\r";
  } else {
    std::snprintf(buffer, sizeof buffer,
                  c <= 0xFF     ? "\\x%02X"
                  : c <= 0xFFFF ? "\\u%04X"
                                : "\\U%08X",
                  static_cast<unsigned>(c));
    out += buffer;
  }
}

std::string DoubleQuoted(std::string_view text) {
  std::string out = "\"";
  for (size_t i = 0; i < text.size();) {
    const size_t start = i;
    const uint32_t c = NextCharacter(text, i);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (IsPrintable(c)) {
      out += text.substr(start, i - start);
    } else {
      AppendEscaped(out, c);
    }
  }
  return out + '"';
}

bool IsWordStart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '/' || c == '$' || c == '(' || c == '.' || c == '+';
}

// Dates, times and the like, which some readers make numbers of.
bool IsNumericLooking(std::string_view text) {
  return text.find_first_not_of("0123456789_:.+-eExXtTzZ ") == text.npos;
}

bool IsPlainSafe(const std::string& text) {
  YamlNode scalar;
  scalar.text = text;
  ResolvePlain(scalar);
  if (scalar.kind != YamlNode::Kind::kString || IsNumericLooking(text)) return false;
  const size_t first = text.find_first_not_of('-');  // --lr=0.1 is safe; "- a" and "---" are not
  if (first > 2 || !IsWordStart(text[first])) return false;
  if (text.find(": ") != text.npos || text.find(" #") != text.npos) return false;
  if (text.back() == ':' || text.back() == ' ') return false;
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c <= 0x7E; });
}

// Several lines that a literal block shows as they are.
bool IsBlockSafe(std::string_view text) {
  if (text.find('\n') == text.npos || text.front() == '\n' || text.front() == ' ') return false;
  if (text.substr(text.size() - 2) == "\n\n" || text.find(" \n") != text.npos) return false;
  if (text.back() == ' ') return false;
  for (size_t i = 0; i < text.size();) {
    const uint32_t c = NextCharacter(text, i);
    if (c != '\n' && !IsPrintable(c)) return false;
  }
  return true;
}

std::string Scalar(const Json& value) {
  if (value.is_null()) return "null";
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    return IsPlainSafe(text) ? text : DoubleQuoted(text);
  }
  return value.is_number_float() ? FormatNumber(value.get<double>()) : JsonText(value);
}

class Writer {
 public:
  // A value after "key:" or "-" on the line so far; ends the line.
  void Write(const Json& value, int indent, bool in_list) {
    if (value.is_structured() && value.empty()) {
      out_ += value.is_object() ? " {}\n" : " []\n";
    } else if (value.is_object()) {
      WriteObject(value, indent, in_list);
    } else if (value.is_array()) {
      WriteList(value, indent, in_list);
    } else if (value.is_string() && IsBlockSafe(value.get_ref<const std::string&>())) {
      WriteBlock(value.get_ref<const std::string&>(), indent);
    } else {
      out_ += " " + Scalar(value) + "\n";
    }
  }

  void WriteObject(const Json& object, int indent, bool in_list) {
    // In a list the first key follows the dash.
    std::string prefix = in_list ? " " : "\n" + std::string(indent, ' ');
    for (const auto& [key, value] : object.items()) {
      out_ += prefix + Key(key, indent);
      // kubectl's lists stand below their key without further indentation.
      Write(value, value.is_array() ? indent : indent + 2, false);
      prefix = std::string(indent, ' ');
    }
  }

  void WriteList(const Json& list, int indent, bool in_list) {
    std::string prefix = in_list ? " " : "\n" + std::string(indent, ' ');
    for (const Json& item : list) {
      out_ += prefix + "-";
      Write(item, indent + 2, true);
      prefix = std::string(indent, ' ');
    }
  }

  std::string Release() { return std::move(out_); }

 private:
  static std::string Key(const std::string& key, int indent) {
    const std::string text = Scalar(key);
    if (text.size() <= kMaxSimpleKey) return text + ":";
    return "? " + text + "\n" + std::string(indent, ' ') + ":";
  }

  void WriteBlock(const std::string& text, int indent) {
    const bool ends = text.back() == '\n';
    out_ += ends ? " |\n" : " |-\n";
    for (size_t start = 0; start < text.size();) {
      const size_t end = std::min(text.find('\n', start), text.size());
      if (end > start) out_ += std::string(indent, ' ') + text.substr(start, end - start);
      out_ += '\n';
      start = end + 1;
    }
  }

  std::string out_;
};

}  // namespace

std::string YamlOf(const Json& tree) {
  Writer writer;
  writer.Write(tree, 0, false);
  std::string text = writer.Release();
  return text.substr(1);  // the line break, or the blank, that would follow a key
}

}  // namespace shirabe::experiment
