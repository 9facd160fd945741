#include "cmd/controller_options.h"

#include <utility>

#include "base/file_io.h"
#include "base/log.h"
#include "cmd/spec_file.h"
#include "cmd/terminal.h"
#include "kube/impersonation.h"
#include "kube/resource_path.h"
#include "trial/pod/pod_scheduling.h"

namespace shirabe::cmd {

void AddControllerFlags(Options& options, ControllerFlags* flags) {
  AddListenOptions(options, &flags->listen_options);
  options.Text("--advertise", &flags->advertise, "HOST:PORT",
               "where the pods of trials reach --grpc: shirabe.shirabe-system.svc:7450");
  options.Text("--image", &flags->image, "IMAGE",
               "this program, for the containers beside a trial (default: that of our own pod)");
  options.Text("--tls-ca", &flags->tls_ca, "FILE",
               "the authority of --tls-cert, PEM; without --tls-cert a certificate is made and "
               "kept, in the Secret shirabe-tls or in the home");
  options.Text(
      "--kubeconfig", &flags->kubeconfig, "FILE",
      "how to reach the cluster (default: our pod's account, $KUBECONFIG, ~/.kube/config)");
  options.Text("--kube-context", &flags->kube_context, "NAME", "which context of it");
  options.Text("--lease-namespace", &flags->lease_namespace, "NAMESPACE",
               "where the replicas elect who leads; without it there is one replica");
  options.Flag("--adopt-all", &flags->adopt_all,
               "where another project's CRDs are installed, take up all Experiments, not only "
               "those labelled shirabe.dev/managed=true");
  options.Text(
      "--trial-account", &flags->trial_account, "NAME",
      "make, change and delete what trials are as the ServiceAccount of this name in their "
      "namespace, so that none can be what that account may not make (default: with the "
      "controller's own rights)");
  options.Text(
      "--pod-storage-class", &flags->pod_storage_class, "NAME",
      "what a pod of a trial shares with its sidecar lies on a claim of this StorageClass, "
      "made and deleted with the pod, and `kubectl drain` needs no --delete-emptydir-data "
      "(default: on an emptyDir)");
  options.Text("--pod-storage-size", &flags->pod_storage_size, "SIZE",
               "of each such claim (default 8Gi): logs, outputs, code, and checkpoints where no "
               "volume is named for them");
  options.Text("--nodes", &flags->nodes, "FILE",
               "pools of machines with their prices, in YAML; read again when it changes");
}

Status CheckControllerFlags(const ControllerFlags& flags) {
  RETURN_IF_ERROR(CheckListenOptions(flags.listen_options));
  if (flags.advertise.empty()) {
    return UsageError("--advertise HOST:PORT is missing: where pods reach --grpc");
  }
  if (flags.listen_options.tls.certificate.empty() != flags.tls_ca.empty()) {
    return UsageError("--tls-cert, --tls-key and --tls-ca go together");
  }
  if (!flags.trial_account.empty()) {
    const Status name = kube::CheckAccountName(flags.trial_account);
    if (!name.ok()) return UsageError("--trial-account: " + Message(name));
  }
  if (!flags.pod_storage_class.empty() && !kube::IsDnsName(flags.pod_storage_class)) {
    return UsageError("--pod-storage-class: \"" + flags.pod_storage_class +
                      "\" is no name of a StorageClass: kubectl get storageclasses lists them");
  }
  if (trial::ParseQuantity(flags.pod_storage_size).value_or(0) <= 0) {
    return UsageError("--pod-storage-size: \"" + flags.pod_storage_size +
                      "\" is no size: give one such as 8Gi");
  }
  return absl::OkStatus();
}

namespace {

constexpr absl::Duration kLook = absl::Seconds(2);
constexpr int64_t kMostBytes = (1 << 20) + 1;  // one more than the parser takes

}  // namespace

// A mistake in a ConfigMap must not stop the controller when its pod is made again.
StatusOr<PoolsFile> PoolsFile::Open(const std::string& path, const std::string& kept) {
  PoolsFile file(path, kept);
  if (path.empty()) return file;
  ASSIGN_OR_RETURN(std::string text, ReadFile(path, kMostBytes));
  const Status taken = file.Take(std::move(text));
  if (taken.ok()) return file;
  const StatusOr<std::string> before = ReadFile(kept, kMostBytes);
  if (!before.ok()) return taken;
  ASSIGN_OR_RETURN(file.pools_, ReadPools(*before, kept));
  Log(LogLevel::kError, "the pools of --nodes cannot be used: those of before are",
      {{"file", path}, {"trouble", Message(taken)}});
  return file;
}

Status PoolsFile::Take(std::string text) {
  text_ = std::move(text);
  ASSIGN_OR_RETURN(pools_, ReadPools(text_, path_));
  const Status written = WriteFileAtomic(kept_, text_);
  if (!written.ok()) {
    Log(LogLevel::kWarning, "failed to keep a copy of the pools",
        {{"file", kept_}, {"error", Message(written)}});
  }
  return absl::OkStatus();
}

bool PoolsFile::Reload(absl::Duration monotonic) {
  if (path_.empty() || monotonic < next_look_) return false;
  next_look_ = monotonic + kLook;
  StatusOr<std::string> text = ReadFile(path_, kMostBytes);
  if (!text.ok() || *text == text_) return false;
  const std::string before = pools_.SerializeAsString();
  const Status status = Take(*std::move(text));
  if (!status.ok()) {
    Log(LogLevel::kError, "the pools of --nodes cannot be used: those of before stay",
        {{"file", path_}, {"trouble", Message(status)}});
  }
  return pools_.SerializeAsString() != before;
}

}  // namespace shirabe::cmd
