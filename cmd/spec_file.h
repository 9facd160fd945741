// Experiments, and pools of machines, from files: read, parsed, checked, and what is wrong with
// them printed on stderr as file:line:col. Used by the main thread.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "experiment/spec.h"

namespace shirabe::cmd {

struct SpecFile {
  std::string shown_name;  // as in messages
  std::vector<experiment::ParsedExperiment> documents;
};

// "-" is stdin. Errors are those of reading; what is wrong with the text is in the documents.
StatusOr<SpecFile> ReadSpecFile(const std::string& path);

// Prints every finding. kInvalidArgument, with their number, if some are errors.
Status ReportFindings(const SpecFile& file);

// The one experiment of a file, without errors. Warnings are printed.
StatusOr<v1::Experiment> LoadExperiment(const std::string& path);

// The pools of a nodes file, without errors. Warnings are printed.
StatusOr<v1::NodePools> LoadNodes(const std::string& path);

// Whether this build can run it on this machine: the algorithm, the stopping rule and the collector
// are there, and the template says what to execute. kInvalidArgument, with what is at hand.
Status CheckRunnable(const v1::Experiment& experiment);

}  // namespace shirabe::cmd
