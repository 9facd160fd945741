#include "view/analysis_text.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "experiment/spec/field_rules.h"
#include "view/text_table.h"

namespace shirabe::view {
namespace {

std::string PercentText(double share) { return absl::StrFormat("%.0f %%", 100 * share); }

std::string ShareText(const v1::Estimate& share) {
  return absl::StrFormat("%s (%.0f to %.0f)", PercentText(share.value()), 100 * share.low(),
                         100 * share.high());
}

std::string VerdictText(v1::ImportanceVerdict verdict) {
  return experiment::WordOf(*v1::ImportanceVerdict_descriptor(), verdict);
}

std::string Plural(int64_t count, const char* what) {
  return absl::StrCat(count, " ", what, count == 1 ? "" : "s");
}

}  // namespace

std::string EstimateText(const v1::Estimate& estimate) {
  return absl::StrFormat("%.4g (%.4g to %.4g)", estimate.value(), estimate.low(), estimate.high());
}

std::string ImportanceTable(const v1::Importance& importance, bool with_header) {
  const bool ped = importance.method() == v1::IMPORTANCE_PED;
  Table table(ped ? std::vector<std::string>{"PARAMETER", "SHARE"}
                  : std::vector<std::string>{"PARAMETER", "TOTAL", "ALONE", "VERDICT"});
  for (const v1::ParameterImportance& one : importance.parameters()) {
    if (ped) {
      table.Add({one.parameter(), PercentText(one.share())});
    } else {
      table.Add({one.parameter(), ShareText(one.total()), ShareText(one.first_order()),
                 VerdictText(one.verdict())});
    }
  }
  return table.Render(with_header);
}

std::string AblationTable(const v1::Ablation& ablation, bool with_header) {
  Table table({"PARAMETER", "FROM", "TO", "OBJECTIVE", "GAIN"});
  for (const v1::AblationStep& step : ablation.steps()) {
    table.Add({step.parameter(), step.from_value(), step.to_value(), EstimateText(step.objective()),
               EstimateText(step.gain())});
  }
  return table.Render(with_header);
}

std::string AblationEndsLine(const v1::Ablation& ablation) {
  if (!ablation.has_from()) return "";
  return absl::StrCat("from trial ", ablation.from_trial(), ", ", EstimateText(ablation.from()),
                      ", to trial ", ablation.to_trial(), ", ", EstimateText(ablation.to()),
                      ": as predicted");
}

std::string BasisLine(const v1::ModelBasis& basis) {
  if (!basis.too_few().empty()) return "too few trials to tell: " + basis.too_few();
  std::string line = "from " + Plural(basis.results(), "result");
  if (basis.has_explained()) {
    line += basis.explained() > 0
                ? ", of whose variance the model explains " + PercentText(basis.explained())
                : ", of whose variance the model explains nothing";
  }
  if (basis.left_out() > 0) absl::StrAppend(&line, "; ", basis.left_out(), " of them left out");
  if (basis.failed() > 0) {
    absl::StrAppend(&line, "; ", Plural(basis.failed(), "trial"), " without a result not used");
  }
  if (basis.active() > 0) absl::StrAppend(&line, "; ", basis.active(), " still under way");
  return line;
}

}  // namespace shirabe::view
