// Whether an experiment can run where this process runs experiments: what its specification alone
// does not say. Used by the client over a store; any thread once it is filled in.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "artifacts/store_table.h"
#include "base/status.h"
#include "proto/shirabe/v1/experiment.pb.h"

namespace shirabe::kube {
class Client;
}

namespace shirabe::client {

struct PlaceCheck {
  kube::Client* cluster = nullptr;                        // where its trials run; null = here
  std::optional<std::vector<std::string>> host_paths{};   // that checkpoints may lie on; none = any
  std::shared_ptr<const artifacts::StoreTable> stores{};  // shared: with the executor

  // Only a process that runs experiments in a cluster knows what is there. What cannot be found
  // out, and what may still come, is no reason to refuse it: its trials wait, and say why.
  Status Check(const v1::Experiment& experiment) const;
};

}  // namespace shirabe::client
