#include "sidecar/pod.h"

#include "absl/strings/str_cat.h"
#include "base/beneath.h"
#include "base/file.h"
#include "base/message_json.h"
#include "trial/layout.h"

namespace shirabe::sidecar {
namespace {

constexpr int64_t kMaxMessageBytes = 64 << 20;

}  // namespace

std::string Pod::home() const { return config.home().empty() ? root + "/home" : config.home(); }

StatusOr<Pod> ReadPod(const std::string& json, const std::string& root) {
  if (json.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "$", trial::kPodVariable, " is not set: `shirabe pod` runs in the pods of trials only"));
  }
  Pod pod;
  RETURN_IF_ERROR(
      Prefix(absl::StrCat("$", trial::kPodVariable), MessageFromJson(json, pod.config)));
  const v1::PodConfig& config = pod.config;
  pod.key = {{{config.namespace_(), config.experiment()}, config.trial()}, config.attempt()};
  RETURN_IF_ERROR(Prefix(absl::StrCat("$", trial::kPodVariable), ValidateKey(pod.key)));
  pod.root = root;
  pod.paths = trial::PodPaths(pod.key, root);
  const trial::AttemptPaths home = trial::Layout(pod.home()).Paths(pod.key);
  pod.paths.checkpoint_dir = home.checkpoint_dir;
  pod.paths.output_dir = home.output_dir;
  return pod;
}

Status WriteMessage(const std::string& path, const google::protobuf::Message& message) {
  ASSIGN_OR_RETURN(const std::string json, MessageToJson(message));
  return WriteFileAtomic(path, json + "\n");
}

Status ReadMessage(const std::string& path, google::protobuf::Message& message) {
  ASSIGN_OR_RETURN(const std::string json, ReadBeneath("", path, kMaxMessageBytes));
  return Prefix(path, MessageFromJson(json, message));
}

}  // namespace shirabe::sidecar
