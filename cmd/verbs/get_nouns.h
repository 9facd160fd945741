// What `get` can list; get.cc finds the noun. Used by the main thread.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "cmd/session.h"
#include "cmd/verb_flags.h"

namespace shirabe::cmd {

struct GetRequest {
  ListFlags flags;
  std::vector<std::string> names;
  // Of metrics: also the values that a later attempt, from an older step on, has run again.
  bool all_attempts = false;
};

StatusOr<int> GetExperiments(const Session& session, const GetRequest& request);
StatusOr<int> GetTrials(const Session& session, const GetRequest& request);
StatusOr<int> GetAttempts(const Session& session, const GetRequest& request);
StatusOr<int> GetCheckpoints(const Session& session, const GetRequest& request);
StatusOr<int> GetMetrics(const Session& session, const GetRequest& request);
StatusOr<int> GetSchedules(const Session& session, const GetRequest& request);

// The trial that is meant by the text; nullopt if it names an experiment. "digits-7" may be either:
// an experiment of that name comes first.
StatusOr<std::optional<TrialKey>> TrialUnlessExperiment(const Session& session,
                                                        const std::string& text);

}  // namespace shirabe::cmd
