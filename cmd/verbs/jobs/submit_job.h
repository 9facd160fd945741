// ai-platform jobs submit training. Used by the main thread.
#pragma once

#include "base/status.h"
#include "cmd/verbs/jobs/job_flags.h"

namespace shirabe::cmd {

// Hands the job to the store or the server; with --stream-logs the exit code is that of the job: 0
// if it has succeeded, else 1.
StatusOr<int> SubmitJob(const JobFlags& flags, const std::string& name);

// Prints the output of its trials until it has ended; then the same code.
StatusOr<int> StreamJobLogs(const JobFlags& flags, const std::string& name);

}  // namespace shirabe::cmd
