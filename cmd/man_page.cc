#include "cmd/man_page.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace shirabe::cmd {
namespace {

std::string ManOption(const OptionHelp& option) {
  return absl::StrCat(".TP\n\\fB", ManText(option.names), "\\fR",
                      option.metavar.empty() ? "" : " \\fI" + ManText(option.metavar) + "\\fR",
                      "\n", ManText(option.help), "\n");
}

// What groff would understand, or make typographic, of words that are to be copied; and where it
// may break a long usage.
std::string Escaped(char c) {
  switch (c) {
    case '\\': return "\\e";
    case '-': return "\\-";
    case '\'': return "\\(aq";
    case '`': return "\\(ga";
    case '^': return "\\(ha";
    case '~': return "\\(ti";
    case '|': return "|\\:";
    default: return std::string(1, c);
  }
}

}  // namespace

std::string ManText(const std::string& text) {
  std::string out = "\\&";  // no request, whatever it begins with
  for (size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x80) {
      out += Escaped(text[i++]);
      continue;
    }
    const int length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
    uint32_t code = byte & (0xff >> (length + 1));
    for (int k = 1; k < length && i + k < text.size(); ++k) {
      code = code << 6 | (static_cast<unsigned char>(text[i + k]) & 0x3f);
    }
    out += absl::StrFormat("\\[u%04X]", code);
    i += length;
  }
  return out;
}

std::string ManOptions(const Options& options) {
  std::string text;
  for (const OptionHelp& option : options.Describe()) text += ManOption(option);
  return text;
}

std::string ManSection(const Options& options, const Options& common) {
  const std::string& usage = options.usage();
  std::string text =
      absl::StrCat(".SS shirabe ", ManText(usage.substr(0, usage.find(' '))), "\n.PP\n\\fBshirabe ",
                   ManText(usage), "\\fR\n.PP\n", ManText(options.about()), "\n");
  const std::vector<OptionHelp> known = common.Describe();
  for (const OptionHelp& option : options.Describe()) {
    const bool is_common = std::any_of(known.begin(), known.end(), [&](const OptionHelp& other) {
      return other.names == option.names && other.help == option.help;
    });
    if (!is_common) text += ManOption(option);
  }
  return text;
}

}  // namespace shirabe::cmd
