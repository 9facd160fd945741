// The administrator's file of artifact stores: read, checked, and what is wrong with it printed on
// stderr as file:line:col. Used by the main thread, before there are others.
#pragma once

#include <memory>

#include "artifacts/store_table.h"
#include "base/status.h"
#include "client/state_location.h"
#include "cmd/verb_flags.h"

namespace shirabe::cmd {

// The administrator's stores: of --stores, else of stores.yaml in the state's folder. If there is
// neither, none; null for a verb that another process may know them better than.
using StoreTablePtr = std::shared_ptr<const artifacts::StoreTable>;  // shared: with executors
StatusOr<StoreTablePtr> FindStores(const Globals& globals, const client::StateLocation& place);

}  // namespace shirabe::cmd
