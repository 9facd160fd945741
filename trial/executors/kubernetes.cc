#include "trial/kubernetes/kubernetes_executor.h"

namespace shirabe::trial {
namespace {

SHIRABE_REGISTER(ExecutorInfo, {.name = "kubernetes",
                                .help = "Jobs, or other objects, of a Kubernetes cluster",
                                .in_cluster = true,
                                .create = KubernetesExecutor::Create});

}  // namespace
}  // namespace shirabe::trial
