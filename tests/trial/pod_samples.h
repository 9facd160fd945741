// Pods as an API server shows them, made step by step, for tests of what they mean.
#pragma once

#include <string>

#include "base/text/json_fields.h"

namespace shirabe::trial {

// A pod that waits to be scheduled, with one container, main. Then as the calls say, in the order
// in which it would happen: started at 12:00:00, disrupted or deleted at :05, ended at :10.
struct PodSample {
  Json pod = Json::parse(R"({
    "metadata": {"name": "exp-1-a1-x7k2p", "namespace": "default"},
    "spec": {"containers": [{"name": "main"}]}, "status": {"phase": "Pending"}})");

  PodSample& Scheduled() {
    pod["spec"]["nodeName"] = "node-0";
    return *this;
  }

  PodSample& Running() {
    Scheduled();
    pod["status"]["phase"] = "Running";
    SetState({{"running", {{"startedAt", "2026-11-21T12:00:00Z"}}}});
    return *this;
  }

  PodSample& Ended(int code, const std::string& reason) {
    Scheduled();
    pod["status"]["phase"] = code == 0 ? "Succeeded" : "Failed";
    Json terminated = {{"exitCode", code}, {"reason", reason}};
    const bool seen = reason != "ContainerStatusUnknown";
    terminated["startedAt"] = seen ? Json("2026-11-21T12:00:00Z") : Json();
    terminated["finishedAt"] = seen ? Json("2026-11-21T12:00:10Z") : Json();
    SetState({{"terminated", terminated}});
    return *this;
  }

  PodSample& InitFailed(const std::string& name, int code) {
    Scheduled();
    pod["status"]["phase"] = "Failed";
    pod["spec"]["initContainers"] = Json::array({Json{{"name", name}}});
    const Json terminated = {
        {"exitCode", code}, {"reason", "Error"}, {"message", "no such bucket"}};
    pod["status"]["initContainerStatuses"] =
        Json::array({Json{{"name", name}, {"state", {{"terminated", terminated}}}}});
    SetState({{"waiting", {{"reason", "PodInitializing"}}}});
    return *this;
  }

  PodSample& Disrupted(const std::string& reason) {
    pod["status"]["conditions"] =
        Json::array({Json{{"type", "DisruptionTarget"},
                          {"status", "True"},
                          {"reason", reason},
                          {"message", "as the platform says"},
                          {"lastTransitionTime", "2026-11-21T12:00:05Z"}}});
    return *this;
  }

  PodSample& Deleted() {
    pod["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:35Z";
    pod["metadata"]["deletionGracePeriodSeconds"] = 30;
    return *this;
  }

 private:
  void SetState(const Json& state) {
    pod["status"]["containerStatuses"] = Json::array({Json{{"name", "main"}, {"state", state}}});
  }
};

}  // namespace shirabe::trial
