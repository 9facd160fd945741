// What became of each field of a file, for people and for programs. Pure functions.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "convert/conversion.h"

namespace shirabe::convert {

std::string OutcomeWord(Outcome outcome);

// "14 fields taken, 2 changed, 3 left out"
std::string Summary(const Conversion& conversion);

// A line for each field:
//   config.yaml:4:11: left out: trainingInput.region: trials run where the cluster stands
std::string ReportLines(const Conversion& conversion, const std::string& file);

// {file, format, taken, changed, leftOut, fields: [{field, line, column, outcome, became, value,
// remark}]}; what a field does not have is left out.
nlohmann::ordered_json ReportJson(const Conversion& conversion, const std::string& file);

}  // namespace shirabe::convert
