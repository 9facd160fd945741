// What a controller tells the executor `kubernetes` about itself and its cluster. Data.
#pragma once

#include <string>
#include <vector>

namespace shirabe::kube {
class Client;
}

namespace shirabe::trial {

struct PodOptions {
  kube::Client* client = nullptr;       // outlives the executor
  std::string image;                    // of our init and sidecar containers: this program
  std::string image_pull_policy;        // of it; "" = the cluster's default
  std::string server;                   // HOST:PORT where sidecars reach us by gRPC
  std::string ca;                       // PEM; "" = plaintext
  std::vector<std::string> host_paths;  // that checkpoints may lie on (CheckHostPath)
  std::string storage_class;            // of each pod's own volumes; "" = emptyDir
  std::string storage_size;             // of each of them, where there is a class
  std::string only_namespace;           // all that we may look at, besides nodes; "" = all of them
};

}  // namespace shirabe::trial
