#include "tracking/trial_rows.h"

#include "client/wire_format.h"

namespace shirabe::tracking {

Status EachRow(client::Client& client, const TrialKey& key,
               const std::function<Status(const db::StoredObservation&)>& row) {
  const v1::ListObservationsRequest request = client::ToWire(db::ObservationQuery{.trial = key});
  const auto block = [&](google::protobuf::Message& reply) -> Status {
    for (v1::ObservationRecord& record :
         *static_cast<v1::ObservationBlock&>(reply).mutable_rows()) {
      RETURN_IF_ERROR(row(client::FromWire(std::move(record))));
    }
    return absl::OkStatus();
  };
  return client.Call(client::MethodOf("ListObservations"), request, block);
}

}  // namespace shirabe::tracking
