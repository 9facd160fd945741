// What tests of the object of an attempt share: a request, the object that is built for it, and the
// parts of its pod.
#pragma once

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "proto/shirabe/v1/pod.pb.h"
#include "tests/support/parse_struct.h"
#include "trial/local/supervisor_records.h"
#include "trial/pod/pod_build.h"
#include "trial/pod/pod_names.h"

namespace shirabe::trial {

inline constexpr char kJob[] = R"json({
  "apiVersion": "batch/v1", "kind": "Job",
  "spec": {"backoffLimit": 3, "ttlSecondsAfterFinished": 5, "template": {"spec": {
    "containers": [{"name": "main", "image": "train:1",
                    "command": ["python3", "train.py"], "args": ["--lr", "0.1"],
                    "env": [{"name": "MINE", "value": "$(SHIRABE_TRIAL)"},
                            {"name": "SHIRABE_SEED", "value": "7"}]}]}}}})json";

inline AttemptRequest Request(const std::string& object = kJob) {
  AttemptRequest request;
  request.key = {{{"team", "exp"}, 3}, 2};
  request.token = "secret";
  request.trial_spec = ParseStruct(object);
  request.primary_container = "main";
  request.environment = {{"SHIRABE_TRIAL", "exp-3"},
                         {"SHIRABE_SEED", "1"},
                         {"SHIRABE_PARAM_TEXT", "$(HOME) costs $5"},
                         {"SHIRABE_GRACE_SECONDS", "15"}};
  request.parameters_json = "{\"lr\": 0.1}\n";
  request.grace = absl::Seconds(15);
  request.cluster.trial_template.set_success_condition("status.succeeded");
  request.cluster.owner = "uid-1";
  return request;
}

inline PodOptions Options() {
  return {.image = "shirabe:1", .image_pull_policy = "Never", .server = "s:7450", .ca = "PEM"};
}

inline AttemptObject Build(const AttemptRequest& request, const PodScheduling& place = {}) {
  auto built = BuildAttemptObject(request, Options(), place);
  EXPECT_TRUE(built.ok()) << built.status();
  return built.value_or(AttemptObject());
}

inline std::string Refusal(const AttemptRequest& request) {
  const auto built = BuildAttemptObject(request, Options(), {});
  EXPECT_EQ(built.status().code(), absl::StatusCode::kInvalidArgument) << built.status();
  return Message(built.status());
}

// The parts of a pod by name.
struct Pod {
  explicit Pod(const Json& object, const char* main = "main")
      : metadata(At(object, {"spec", "template", "metadata"})),
        spec(At(object, {"spec", "template", "spec"})),
        program(Named(At(spec, "containers"), main)),
        init(Named(At(spec, "initContainers"), "shirabe-init")),
        sidecar(Named(At(spec, "initContainers"), "shirabe-sidecar")) {}
  const Json& metadata;
  const Json& spec;
  const Json& program;
  const Json& init;
  const Json& sidecar;
};

inline std::string Variable(const Json& container, const std::string& name) {
  return Text(Named(At(container, "env"), name), {"value"});
}

inline std::vector<std::string> MountPaths(const Json& container) {
  std::vector<std::string> paths;
  for (const Json& mount : Items(At(container, "volumeMounts"))) {
    paths.push_back(Text(mount, {"mountPath"}));
  }
  return paths;
}

inline v1::PodConfig ConfigOf(const Json& container) {
  std::string text = Variable(container, "SHIRABE_POD");
  // As the kubelet would.
  for (size_t at = 0; (at = text.find("$$", at)) != std::string::npos; ++at) text.erase(at, 1);
  v1::PodConfig config;
  const auto status = google::protobuf::util::JsonStringToMessage(text, &config);
  EXPECT_TRUE(status.ok()) << text;
  return config;
}

// Its collector reads that file.
inline AttemptRequest WithFile(const std::string& path, const std::string& object = kJob) {
  AttemptRequest request = Request(object);
  request.cluster.collector.mutable_collector()->set_kind(v1::FILE_COLLECTOR);
  auto* file = request.cluster.collector.mutable_source()->mutable_file_system_path();
  file->set_path(path);
  file->set_kind(v1::FILE);
  return request;
}

}  // namespace shirabe::trial
