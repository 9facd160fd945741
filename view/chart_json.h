// What charts draw, as HTTP sends it: summaries and capacity as JSON, columns and curves as a short
// JSON head and arrays of 64-bit floating-point numbers (docs/design/formats.md). Pure functions.
#pragma once

#include <string>

#include "proto/shirabe/v1/charts.pb.h"
#include "view/shaped_json.h"

namespace shirabe::view {

Json SummaryJson(const v1::Summary& summary);
Json CapacityJson(const v1::CapacityReport& report);
// Each row as an object: words for categories, what is not there left out.
Json RowsJson(const v1::Columns& columns);

inline constexpr char kColumnsType[] = "application/vnd.shirabe.columns";
// `next` is the token of the next page; "" = these are all.
std::string PackColumns(const v1::Columns& columns, int64_t since, const std::string& next);
std::string PackCurves(const v1::Curves& curves);

}  // namespace shirabe::view
