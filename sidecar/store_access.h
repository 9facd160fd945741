// The stores of an experiment, for a pod, which has no credentials: each request is made with a URL
// that the server gives for it (rpc v1.Pods/Grant). They are used as any other store.
#pragma once

#include <memory>

#include "artifacts/store_table.h"
#include "base/status.h"
#include "proto/shirabe/v1/pod.pb.h"
#include "sidecar/server_link.h"

namespace shirabe::sidecar {

struct PodStores {
  using Table = std::shared_ptr<const artifacts::StoreTable>;  // shared: with threads that copy
  using Store = std::shared_ptr<artifacts::ArtifactStore>;     // shared: with the table
  Table copies;  // of the store that checkpoints and outputs go to; null = there are none
  Store code;    // has one object, CodeKey; null = there is none
};

// Of the code package, in PodStores::code.
std::string CodeKey(const v1::PodConfig& config);

// Those that the configuration names. kUnimplemented, naming the package, if there is no libcurl.
StatusOr<PodStores> OpenStores(const v1::PodConfig& config);

// A store over `link`: calls of several threads go over it one after the other.
StatusOr<PodStores::Store> OpenGrantedStore(const v1::PodConfig& config,
                                            std::unique_ptr<ServerLink> link);

}  // namespace shirabe::sidecar
