// All trials of an experiment as CSV (RFC 4180) or JSON lines, for pandas, R and spreadsheets.
// Columns are named as in --filter: trial, state, objective, step, metric.NAME…, param.NAME…,
// attempts, start_time, completion_time. Numbers are exact; an empty cell is "not known". Pure.
#pragma once

#include <string>

#include "proto/shirabe/v1/experiment.pb.h"
#include "proto/shirabe/v1/records.pb.h"
#include "view/record_json.h"

namespace shirabe::view {

// The first line, then one line a trial; with the newline.
std::string CsvHeader(const v1::Experiment& experiment);
std::string CsvLine(const v1::Experiment& experiment, const v1::Trial& trial);
// One object: {"trial", "state", "objective", "step", "metrics": {}, "params": {}, …}.
std::string JsonLine(const v1::Experiment& experiment, const v1::Trial& trial);

// Quoted where it holds a comma, a quote, a line break, or blanks at an end.
std::string CsvCell(const std::string& text);

}  // namespace shirabe::view
