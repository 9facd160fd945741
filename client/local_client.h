// The client over a store of this machine, and what only a process that has the store can do: run
// experiments itself. Thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "artifacts/store_table.h"
#include "base/clock.h"
#include "client/client.h"
#include "client/records/namespace_guard.h"
#include "client/state_location.h"
#include "db/store.h"
#include "experiment/experiment_controller.h"
#include "schedule/schedule_records.h"
#include "trial/pod/pod_options.h"

namespace shirabe::client {

struct LocalOptions {
  StateLocation place;
  bool read_only = true;
  Clock* clock = nullptr;  // outlives the client
  v1::Actor actor = {};    // its user, as recorded with what they cause
  // Of the administrator (artifacts/store_table.h); null = what experiments name is not looked at.
  std::shared_ptr<const artifacts::StoreTable> stores = {};  // shared: with the executor
};

// What the experiments that a process runs may use.
struct ExecutionOptions {
  std::vector<std::string> devices;  // GPUs that trials may be given
  v1::NodePools pools;               // none: this machine, without a price or a limit
  std::string working_dir;           // where trials without one start
  std::string executor = "process";  // or kubernetes, with `pods`
  trial::PodOptions pods = {};
  // Of the nodes, that checkpoints may lie on (trial/kubernetes/checkpoint_volume.h), also where
  // experiments run elsewhere; nullopt = any: the user who runs them is their author.
  std::optional<std::vector<std::string>> host_paths = {};
  experiment::Limits limits = {};  // of what one experiment and one namespace may take
};

// What is caused for another than options.actor records that actor, where a caller that is trusted
// says so: in experiment.status.shirabe.createdBy of what is submitted, and in the `actor` of an
// import, an intent and a deletion. A server sets all of them itself
// (service/common/guarded_client.h).
class LocalClient : public Client {
 public:
  // A database that was not named and that is not there yet reads as an empty one. Otherwise the
  // errors of db::Open: kNotFound, kPermissionDenied, kDataLoss, kUnimplemented (newer schema), ….
  static StatusOr<std::unique_ptr<LocalClient>> Open(LocalOptions options);

  // Runs experiments of this store as processes of this machine, so many at the same time. The
  // client must outlive it.
  virtual StatusOr<std::unique_ptr<experiment::Controller>> MakeController(
      ExecutionOptions machines, int workers) = 0;

  // kPermissionDenied unless an attempt of this trial has this token.
  virtual Status CheckToken(const TrialKey& key, const std::string& token) = 0;

  // Records belong to a namespace's uid, where there is a cluster that knows it: kNotFound for a
  // name that nothing has. From now on new experiments are of the namespace as it is; those of one
  // that is gone, or has given its name away, are as if they were not there, and are deleted once
  // seen.
  virtual void SetNamespaces(NamespaceUid uid) = 0;

  // What this is a client of, for those who look after it (client/store_backup.h,
  // client/store_prune.h); what concerns experiments goes through the methods.
  virtual db::Store& store() = 0;
  // As it was opened with; null = none are known.
  virtual std::shared_ptr<const artifacts::StoreTable> stores() const = 0;  // shared: as above

  // Its schedules, for the server that starts what is due.
  virtual schedule::ScheduleRecords& schedules() = 0;

  // From now on this controller, which lasts as long as the client is used, is told at once what is
  // asked of the experiments that it owns; null = none is.
  virtual void Attach(experiment::Controller* controller) = 0;
};

}  // namespace shirabe::client
