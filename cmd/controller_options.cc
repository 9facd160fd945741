#include "cmd/controller_options.h"

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

}  // namespace shirabe::cmd
