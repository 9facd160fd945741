// Experiments, and pools of machines, from files: read, parsed, checked, and what is wrong with
// them printed on stderr as file:line:col. Used by the main thread.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "cmd/session.h"
#include "experiment/spec/parse_spec.h"

namespace shirabe::cmd {

struct SpecFile {
  std::string shown_name;  // as in messages
  std::vector<experiment::ParsedExperiment> documents;
};

// "-" is stdin. Errors are those of reading; what is wrong with the text is in the documents.
StatusOr<SpecFile> ReadSpecFile(const std::string& path);

// Prints every finding. kInvalidArgument, with their number, if some are errors.
Status ReportFindings(const SpecFile& file);

// All experiments of a file, without errors, at least one. Warnings are printed.
StatusOr<std::vector<v1::Experiment>> LoadExperiments(const std::string& path);

// All experiments of these files, as LoadExperiments, in the namespace that was chosen for the
// session if one was: it wins over the one in a file.
StatusOr<std::vector<v1::Experiment>> LoadFor(const Session& session,
                                              const std::vector<std::string>& paths);

// The one experiment of a file, without errors. Warnings are printed.
StatusOr<v1::Experiment> LoadExperiment(const std::string& path);

// The pools of a nodes file, without errors. Warnings are printed.
StatusOr<v1::NodePools> LoadNodes(const std::string& path);

}  // namespace shirabe::cmd
