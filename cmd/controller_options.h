// The flags of the verb `controller`. Used by its main thread.
#pragma once

#include <string>

#include "base/status.h"
#include "cmd/listen_options.h"
#include "cmd/options.h"

namespace shirabe::cmd {

struct ControllerFlags {
  ListenOptions listen_options;
  std::string tls_ca;
  std::string advertise;
  std::string image;
  std::string kubeconfig;
  std::string kube_context;
  std::string lease_namespace;
  std::string nodes;
  std::string trial_account;  // "" = trials are made with the controller's own rights
  std::string pod_storage_class;
  std::string pod_storage_size = "8Gi";
  bool adopt_all = false;
};

void AddControllerFlags(Options& options, ControllerFlags* flags);

// kInvalidArgument, as a mistake of usage, for flags that are missing or do not go together.
Status CheckControllerFlags(const ControllerFlags& flags);

}  // namespace shirabe::cmd
