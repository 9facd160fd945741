// Which replies a report of an experiment has: what its pages ask for, and pages of as many trials
// as are wanted. What is not in it, it says. Used by the main thread.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "client/client.h"
#include "cmd/verbs/page/report_file.h"
#include "cmd/verbs/page/route_replies.h"

namespace shirabe::cmd {

struct ReportChoice {
  int64_t trial_pages = 200;
  bool logs = false;
};

class ReportContent {
 public:
  // All of it outlives this. `experiment` as it is stored.
  ReportContent(client::Client& client, const v1::Experiment& experiment, RouteReplies& routes);

  // Everything, into `file`. An error where the experiment cannot be read; what can be done without
  // (a model of too few trials, a log that has gone) is left out.
  Status Collect(const ReportChoice& choice, ReportFile& file);
  // After that.
  const ReportFacts& facts() const { return facts_; }

 private:
  struct Trials {
    std::vector<int64_t> ranked;  // with a result, the best first
    std::vector<int64_t> open;    // that run or wait, the newest first
    std::vector<int64_t> others;  // that ended without a result, the newest first
    int64_t total = 0;
  };
  StatusOr<Trials> ReadTrials();
  Status AddExperiment();
  Status AddPages(const std::string& target);
  Status AddEvents();
  Status AddModels();
  Status AddCurves(const Trials& trials);
  Status AddTrialPages(const Trials& trials, const ReportChoice& choice);
  Status AddTrialPage(int64_t number, bool logs);
  Status AddLogs(int64_t number);
  // The end of each; `what` has the attempts, below the experiment.
  Status AddLogsOf(const std::string& what, int64_t attempts);
  Status AddObservations(int64_t number);
  Status Add(const std::string& target);
  // A picture that cannot be made is left out, and why is said.
  Status AddIfThere(const std::string& target);
  // An error in it may be the words of a plug-in.
  void LeaveOut(const std::string& sentence);

  client::Client& client_;
  const v1::Experiment& experiment_;
  RouteReplies& routes_;
  const std::string base_;  // of the experiment's paths
  ReportFile* file_ = nullptr;
  ReportFacts facts_;
  std::set<std::string> missing_;  // why pictures are not there
  int64_t long_metrics_ = 0;       // trials whose metrics are too many
};

}  // namespace shirabe::cmd
