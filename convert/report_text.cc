#include "convert/report_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/printable.h"

namespace shirabe::convert {
namespace {

int64_t CountOf(const Conversion& conversion, Outcome outcome) {
  return std::count_if(conversion.notes.begin(), conversion.notes.end(),
                       [&](const Note& note) { return note.outcome == outcome; });
}

std::string Became(const Note& note) {
  if (note.became.empty()) return "";
  return absl::StrCat(" -> ", note.became, note.value.empty() ? "" : " = " + note.value);
}

}  // namespace

std::string OutcomeWord(Outcome outcome) {
  switch (outcome) {
    case Outcome::kTaken: return "taken";
    case Outcome::kChanged: return "changed";
    case Outcome::kLeftOut: return "left out";
  }
  return "";
}

std::string Summary(const Conversion& conversion) {
  return absl::StrCat(CountOf(conversion, Outcome::kTaken), " fields taken, ",
                      CountOf(conversion, Outcome::kChanged), " changed, ",
                      CountOf(conversion, Outcome::kLeftOut), " left out");
}

std::string ReportLines(const Conversion& conversion, const std::string& file) {
  std::string text;
  for (const Note& note : conversion.notes) {
    const std::string place = note.mark.line == 0
                                  ? "flags"
                                  : absl::StrCat(file, ":", note.mark.line, ":", note.mark.column);
    const std::string field = note.field.empty() ? "the whole" : note.field;
    absl::StrAppend(
        &text,
        Printable(absl::StrCat(place, ": ", OutcomeWord(note.outcome), ": ", field, Became(note),
                               note.remark.empty() ? "" : ": ", note.remark)),
        "\n");
  }
  return text;
}

nlohmann::ordered_json ReportJson(const Conversion& conversion, const std::string& file) {
  nlohmann::ordered_json report = {{"file", file},
                                   {"format", conversion.format},
                                   {"taken", CountOf(conversion, Outcome::kTaken)},
                                   {"changed", CountOf(conversion, Outcome::kChanged)},
                                   {"leftOut", CountOf(conversion, Outcome::kLeftOut)},
                                   {"fields", nlohmann::ordered_json::array()}};
  for (const Note& note : conversion.notes) {
    nlohmann::ordered_json field = {{"field", note.field}};
    if (note.mark.line > 0) field["line"] = note.mark.line;
    if (note.mark.line > 0) field["column"] = note.mark.column;
    field["outcome"] = OutcomeWord(note.outcome);
    if (!note.became.empty()) field["became"] = note.became;
    if (!note.value.empty()) field["value"] = note.value;
    if (!note.remark.empty()) field["remark"] = note.remark;
    report["fields"].push_back(std::move(field));
  }
  return report;
}

}  // namespace shirabe::convert
