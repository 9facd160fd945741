// Katib's DBManager: the program that runs a trial reports what it observed, and reads it again.
// Made by the server, once for its own port, where `access` finds out who calls, and once more for
// --katib-listen, where Katib's pushers, which have no token, act for the namespace of the pod at
// their address. Any number of calls at a time.
//
// Ours add fields that Katib's programs do not have: ReportObservationLogRequest.attempt (1001) and
// .token (1002), MetricLog.step (1001). Times are RFC 3339; an empty one is now. A value that is no
// number refuses the whole report, which can then be sent again without it. Errors:
// INVALID_ARGUMENT with the field, those of `access`, and those of katib_observations.h.
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/status.h"
#include "client/client.h"

namespace shirabe::service {

// What trials have reported, as Katib's clients speak of it: by the name of a trial, which they
// believe to be unique, and without an attempt. The services katib_db_manager and
// katib_early_stopping work on this interface; for each call the server gives them one that may do
// what the caller may (MakeClientObservations).

struct KatibObservation {
  std::string metric;
  double value = 0;  // NaN and infinities included
  absl::Time time;
  std::optional<int64_t> step = {};  // without one: the metric's ordinal within the trial
};

struct KatibReport {
  std::string trial;    // its name; "namespace/name" where the name alone is not unique
  int32_t attempt = 0;  // 0 = the one that runs
  std::string token;    // of that attempt; "" = none, or in the call's metadata
  std::vector<KatibObservation> rows;
};

class KatibObservationStore {
 public:
  virtual ~KatibObservationStore() = default;
  // Durable when it returns. kNotFound if there is no such trial or attempt, kInvalidArgument if
  // there are several, kPermissionDenied for a token that is not the attempt's.
  virtual Status Report(const KatibReport& report) = 0;
  // Those that count, of one metric or of all (""), in the order of their steps. kNotFound as
  // above.
  virtual StatusOr<std::vector<KatibObservation>> Read(const std::string& trial,
                                                       const std::string& metric) = 0;
  // All of them. OK if there are none.
  virtual Status Delete(const std::string& trial) = 0;
  // The trial has been stopped early by the program that ran it.
  virtual Status SetEarlyStopped(const std::string& trial) = 0;
};

// Those of one call, for its caller: kUnauthenticated, kPermissionDenied. `method` as the table of
// rights has it, without the package: DBManager/GetObservationLog. Any thread.
using KatibAccess = std::function<StatusOr<std::unique_ptr<KatibObservationStore>>(
    const grpc::ServerContext&, const std::string& method)>;

// The observations of Katib's clients, kept where ours are: reports go to the trial's owner and are
// durable when it has committed them, as those of any program. Made by the server for one call, or
// for all calls of a port.
//
// A trial is found by "namespace/name", or by its name, in `ns`, or where that is "" in the one
// namespace that has such a trial; with several, kInvalidArgument names them. The name of its
// attempt's object, or of a pod of that, is of that attempt alone. Observations belong
// to their trial and go when its experiment is deleted, so that Delete refuses
// (kFailedPrecondition) what is there; and a controller that runs a trial also stops it, so that
// SetEarlyStopped is OK only for a trial that has been.

// The client outlives what is made of it.
std::unique_ptr<KatibObservationStore> MakeClientObservations(client::Client& client,
                                                              const std::string& ns);
// One that is its own.
std::unique_ptr<KatibObservationStore> MakeClientObservations(
    std::unique_ptr<client::Client> client, const std::string& ns);

// `clock` outlives the service.
std::unique_ptr<grpc::Service> MakeKatibDbManager(KatibAccess access, Clock* clock);

}  // namespace shirabe::service
