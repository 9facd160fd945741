// The command line of `shirabe ai-platform jobs …`, which is also kubectl-ai_platform: gcloud's
// grammar for jobs of AI Platform. Used by the main thread.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cmd/verb.h"
#include "cmd/verb_flags.h"
#include "convert/conversion.h"

namespace shirabe::cmd {

struct JobFlags {
  Globals globals;
  Arguments words;      // jobs submit training NAME
  Arguments user_args;  // what stands after "--"
  std::string config;
  std::string package_path;
  std::vector<std::string> packages;  // PATH,… each: tar.gz of this machine or gs://BUCKET/OBJECT
  std::vector<std::string> labels;    // KEY=VALUE,…
  std::string master_accelerator;     // count=N,type=TYPE
  std::string scale_tier;
  // Of trainingInput, by path, as texts: those that are given.
  std::vector<std::pair<std::string, std::string>> fields;
  std::string collector;
  std::string gpus;
  bool stream_logs = false;
  bool async = false;
  std::string format = "text";
  std::optional<int64_t> limit;
  std::optional<int64_t> polling_seconds;
  bool summarize = false;
  std::vector<std::pair<std::string, std::string>> ignored;  // flags of gcloud's, and their values
};

// True if --help has been answered.
StatusOr<bool> ParseJobFlags(const Arguments& arguments, JobFlags* flags);

// The job's experiment: names of jobs may have capitals and underscores. A usage error for a name
// that is too long, or has nothing to call it by.
StatusOr<ExperimentKey> JobKey(const std::string& name, const std::string& ns);

}  // namespace shirabe::cmd
