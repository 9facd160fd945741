// A client of any kind where the routes of HTTP want one of a store: it passes calls on, and runs
// nothing. Thread-safe, as the client is that it is given, which outlives it.
#pragma once

#include <memory>
#include <string>

#include "client/local_client.h"

namespace shirabe::cmd {

class ForwardingClient : public client::LocalClient {
 public:
  explicit ForwardingClient(client::Client& client) : client_(client) {}

  Status Call(const client::Method& method, const google::protobuf::Message& request,
              const client::Sink& sink) override;
  std::string LogLocation(const AttemptKey& key) override;
  Status DeleteExperiment(const v1::DeleteRequest& request, const client::Wait& wait) override;
  StatusOr<std::unique_ptr<experiment::Controller>> MakeController(
      client::ExecutionOptions machines, int workers) override;
  Status CheckToken(const TrialKey& key, const std::string& token) override;
  void SetNamespaces(client::NamespaceUid /*uid*/) override {}
  // For backups and pruning, which no page asks for: there may be none.
  db::Store& store() override;
  std::shared_ptr<const artifacts::StoreTable> stores() const override {  // shared: the interface
    return nullptr;
  }
  // For a server that starts what is due, which this is not.
  schedule::ScheduleRecords& schedules() override;
  void Attach(experiment::Controller* /*controller*/) override {}

 private:
  client::Client& client_;
};

}  // namespace shirabe::cmd
