#include "trial/pod/pod_paths.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "trial/file_layout.h"

namespace shirabe::trial {

AttemptPaths PodPaths(const AttemptKey& key) { return PodPaths(key, kPodRoot); }

AttemptPaths PodPaths(const AttemptKey& key, const std::string& pod_root) {
  AttemptPaths paths = Layout(pod_root + "/home").Paths(key);
  paths.dir = pod_root + "/run";
  paths.log = paths.dir + "/log";
  paths.metrics_file = paths.dir + "/metrics.jsonl";
  paths.hypertune_file = paths.dir + "/hypertune.jsonl";
  paths.scrapes_file = paths.dir + "/scrapes.jsonl";
  paths.params_file = paths.dir + "/params.json";
  paths.control_file = paths.dir + "/control.json";
  return paths;
}

std::vector<std::string> PodCommand(const std::string& id, absl::Duration grace) {
  const std::string run = kPodRun;
  return {kPodSupervisor,
          "--dir",
          run,
          "--id",
          id,
          "--log",
          run + "/log",
          "--env-file",
          run + "/env",
          "--control",
          run + "/control.json",
          "--grace-ms",
          absl::StrCat(absl::ToInt64Milliseconds(ProgramGrace(grace))),
          "--"};
}

absl::Duration ProgramGrace(absl::Duration grace) {
  return std::max(grace * 2 / 3, grace - absl::Seconds(5));
}

absl::Duration FlushGrace(absl::Duration grace) {
  return std::max(grace * 13 / 15, grace - absl::Seconds(2));
}

}  // namespace shirabe::trial
