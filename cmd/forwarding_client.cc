#include "cmd/forwarding_client.h"

namespace shirabe::cmd {

Status ForwardingClient::Call(const client::Method& method,
                              const google::protobuf::Message& request, const client::Sink& sink) {
  return client_.Call(method, request, sink);
}

std::string ForwardingClient::LogLocation(const AttemptKey& key) {
  return client_.LogLocation(key);
}

Status ForwardingClient::DeleteExperiment(const v1::DeleteRequest& request,
                                          const client::Wait& wait) {
  return client_.DeleteExperiment(request, wait);
}

StatusOr<std::unique_ptr<experiment::Controller>> ForwardingClient::MakeController(
    client::ExecutionOptions /*machines*/, int /*workers*/) {
  return absl::UnimplementedError("the dashboard runs no experiments");
}

Status ForwardingClient::CheckToken(const TrialKey& /*key*/, const std::string& /*token*/) {
  return absl::PermissionDeniedError("trials do not report to the dashboard");
}

db::Store& ForwardingClient::store() {
  CheckFailed(__FILE__, __LINE__, "the dashboard's client has no store");
}

schedule::ScheduleRecords& ForwardingClient::schedules() {
  CheckFailed(__FILE__, __LINE__, "the dashboard's client has no schedules of its own");
}

}  // namespace shirabe::cmd
