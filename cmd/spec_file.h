// Experiments, and pools of machines, from files: read, parsed, checked, and what is wrong with
// them printed on stderr as file:line:col. Used by the main thread.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "cmd/session.h"
#include "convert/conversion.h"
#include "experiment/spec/parse_spec.h"
#include "schedule/parse_schedule.h"

namespace shirabe::cmd {

struct SpecFile {
  std::string shown_name;  // as in messages
  std::vector<experiment::ParsedExperiment> documents;
  std::string notice = {};  // that it was a file of another system, and what was taken of it
  std::vector<schedule::ParsedSchedule> schedules = {};  // its ScheduledExperiments
};

// The text of a file; "-" is stdin. One that is too long is cut where its reader refuses it.
struct TextFile {
  std::string shown_name;
  std::string text;
  std::string experiment_name;  // from the name of the file, where the text has none
};
StatusOr<TextFile> ReadTextFile(const std::string& path);

// Files of other systems are converted (convert/conversion.h). Errors are those of reading; what is
// wrong with the text is in the documents.
StatusOr<SpecFile> ReadSpecFile(const std::string& path);

// A file of another system as one of ours: what was left out of it is a warning.
SpecFile SpecFileFrom(const std::string& shown_name, convert::Conversion conversion);

// Prints every finding. kInvalidArgument, with their number, if some are errors.
Status ReportFindings(const SpecFile& file);

// What files hold, without errors; warnings are printed. In the namespace that was chosen for the
// session if one was: it wins over the one in a file.
struct LoadedObjects {
  std::vector<v1::Experiment> experiments;
  std::vector<v1::ScheduledExperiment> schedules;
};
StatusOr<LoadedObjects> LoadObjects(const Session& session, const std::vector<std::string>& paths);

// All experiments of a file, without errors, at least one. Warnings are printed. kInvalidArgument,
// saying what to do with it, for a ScheduledExperiment.
StatusOr<std::vector<v1::Experiment>> LoadExperiments(const std::string& path);

// All experiments of these files, as LoadExperiments, in the namespace that was chosen for the
// session if one was: it wins over the one in a file.
StatusOr<std::vector<v1::Experiment>> LoadFor(const Session& session,
                                              const std::vector<std::string>& paths);

// The one experiment of a file, without errors. Warnings are printed.
StatusOr<v1::Experiment> LoadExperiment(const std::string& path);

// The pools of a nodes file, without errors. Warnings are printed.
StatusOr<v1::NodePools> LoadNodes(const std::string& path);
// The same of a text that was read from there, for a cluster, which may have none.
StatusOr<v1::NodePools> ReadPools(const std::string& text, const std::string& path);

// From now on notifications may be sent to the endpoints of this file of --notifications, whose
// secrets are read; "" = to none. Errors as above.
Status UseEndpoints(const std::string& path);
inline constexpr char kNotificationsHelp[] =
    "endpoints that experiments may have notifications sent to (spec.shirabe.notifications), in "
    "YAML: name, url, secretFile, format, namespaces";

}  // namespace shirabe::cmd
