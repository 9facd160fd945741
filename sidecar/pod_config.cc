#include "sidecar/pod_config.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "base/file_io.h"
#include "base/open_beneath.h"
#include "base/text/json_text.h"
#include "base/timestamp.h"
#include "trial/file_layout.h"
#include "trial/local/supervisor_records.h"

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
  const trial::AttemptPaths home = trial::FileLayout(pod.home()).Paths(pod.key);
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

namespace {

v1::ProgramExit ToProto(const trial::ExitRecord& record) {
  v1::ProgramExit exit;
  exit.set_code(record.code);
  exit.set_signal(record.signal);
  exit.set_out_of_memory(record.oom);
  exit.set_told(record.stop_requested);
  *exit.mutable_began() = shirabe::ToProto(record.began);
  *exit.mutable_ended() = shirabe::ToProto(record.ended);
  if (record.ran) *exit.mutable_ran() = shirabe::ToProto(*record.ran);
  exit.set_message(record.message);
  return exit;
}

// The supervisor holds the lock for as long as it lives. Where locks do not work it is taken to
// live, and the platform's word of the container's end has to do.
bool IsAlive(const Pod& pod) {
  const auto fd = OpenBeneath("", pod.run("alive"));
  return !fd.ok() || flock(fd->get(), LOCK_SH | LOCK_NB) != 0;
}

}  // namespace

ProgramState ReadProgramState(const Pod& pod) {
  ProgramState program;
  program.started = access(pod.run("pid").c_str(), F_OK) == 0;
  if (!program.started) return program;
  // In this order: who is seen to be gone has written its record before.
  const bool alive = IsAlive(pod);
  const auto record = trial::ReadExitRecord(pod.paths.dir);
  program.ended = record.ok() || !alive;
  if (record.ok()) program.exit = ToProto(*record);
  return program;
}

}  // namespace shirabe::sidecar
