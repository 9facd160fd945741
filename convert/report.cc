#include "convert/report.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/printable.h"
#include "base/sorting.h"
#include "experiment/spec/parse_spec.h"

namespace shirabe::convert {
namespace {

// Of what is shown of a value: the rest is in the Experiment.
constexpr size_t kMaxShown = 200;

std::string Shortened(std::string text) {
  if (text.size() <= kMaxShown) return text;
  size_t size = kMaxShown;
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) --size;
  return text.substr(0, size) + "…";
}

// Whether `path` is the field `parent`, or lies below it.
bool IsWithin(const std::string& path, const std::string& parent) {
  if (!absl::StartsWith(path, parent)) return false;
  return path.size() == parent.size() || path[parent.size()] == '.' || path[parent.size()] == '[';
}

}  // namespace

void Report::Taken(const Place& place, Target target) {
  notes_.push_back(
      {place.path, place.mark, Outcome::kTaken, target.path, Shortened(target.value), ""});
}

void Report::Changed(const Place& place, Target target, std::string remark) {
  notes_.push_back({place.path, place.mark, Outcome::kChanged, target.path, Shortened(target.value),
                    std::move(remark)});
}

void Report::LeftOut(const Place& place, std::string remark) {
  notes_.push_back({place.path, place.mark, Outcome::kLeftOut, "", "", std::move(remark)});
}

void Report::Error(const Place& place, std::string message) {
  if (full()) return;
  findings_.push_back({false, place.path, std::move(message), place.mark.line, place.mark.column});
}

void Report::Warn(const Place& place, std::string message) {
  if (full()) return;
  findings_.push_back({true, place.path, std::move(message), place.mark.line, place.mark.column});
}

// The note whose field holds most of the path.
const Note* Report::OriginOf(const std::string& path) const {
  const Note* origin = nullptr;
  for (const Note& note : notes_) {
    if (note.became.empty()) continue;
    const bool below = IsWithin(note.became, path);  // the part of what is wrong as a whole
    if (!IsWithin(path, note.became) && !below) continue;
    if (origin == nullptr || (!below && note.became.size() > origin->became.size())) {
      origin = &note;
    }
  }
  return origin;
}

void Report::CheckExperiment(const v1::Experiment& experiment) {
  v1::Experiment whole = experiment;
  experiment::SetDefaults(whole);
  for (experiment::Finding& finding : experiment::Validate(whole)) {
    const Note* origin = OriginOf(finding.path);
    if (origin != nullptr) {
      finding.line = origin->mark.line;
      finding.column = origin->mark.column;
      finding.message = absl::StrCat(finding.message, " (from ", origin->field, ")");
    }
    findings_.push_back(std::move(finding));
  }
}

void Report::Finish(Conversion& conversion) {
  if (!experiment::HasErrors(findings_)) CheckExperiment(conversion.experiment);
  Sort(conversion);
}

void Report::Sort(Conversion& conversion) {
  const auto place = [](const auto& one) { return std::make_pair(one.line, one.column); };
  StableSort(findings_, [&](const auto& a, const auto& b) { return place(a) < place(b); });
  StableSort(notes_, [&](const Note& a, const Note& b) { return place(a.mark) < place(b.mark); });
  conversion.notes = std::move(notes_);
  conversion.findings = std::move(findings_);
}

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
