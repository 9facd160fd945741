#include "sidecar/trainer_endpoint.h"

#include "base/open_beneath.h"
#include "metrics/trainer_status.h"
#include "trial/local/attempt_endpoints.h"
#include "trial/local/status_endpoint.h"

namespace shirabe::sidecar {
namespace {

constexpr int64_t kMaxTrainerFile = 1 << 16;  // bytes
constexpr unsigned kOpenToAll = 0666;         // the program may be another user

class PodTrainerEndpoint : public TrainerEndpoint {
 public:
  PodTrainerEndpoint(const Pod& pod, std::function<void()> on_points)
      : writer_(pod.paths.metrics_file, kOpenToAll),
        on_points_(std::move(on_points)),
        endpoint_(trial::StatusEndpoint::Create(metrics::kMaxTrainerStatusBytes)) {}

  Status Open(const trial::TrainerAddress& address, const std::string& token) {
    endpoint_->Add(address.path, token, [this](const std::string& body) { return Handle(body); });
    return endpoint_->Listen(address.port).status();
  }

 private:
  Status Handle(const std::string& body) {
    ASSIGN_OR_RETURN(const bool written, writer_.Write(body));
    if (written && on_points_) on_points_();
    return absl::OkStatus();
  }

  metrics::TrainerStatusWriter writer_;
  const std::function<void()> on_points_;
  const std::unique_ptr<trial::StatusEndpoint> endpoint_;  // last: its thread uses the above
};

}  // namespace

StatusOr<std::unique_ptr<TrainerEndpoint>> OpenTrainerEndpoint(const Pod& pod,
                                                               std::function<void()> on_points) {
  ASSIGN_OR_RETURN(const std::string url,
                   ReadBeneath("", pod.run(trial::kTrainerUrlFile), kMaxTrainerFile));
  ASSIGN_OR_RETURN(const std::string token,
                   ReadBeneath("", pod.run(trial::kTrainerTokenFile), kMaxTrainerFile));
  const auto address = trial::ParseTrainerUrl(url);
  RETURN_IF_ERROR(Prefix(pod.run(trial::kTrainerUrlFile), address.status()));
  auto endpoint = std::make_unique<PodTrainerEndpoint>(pod, std::move(on_points));
  RETURN_IF_ERROR(endpoint->Open(*address, token));
  return endpoint;
}

}  // namespace shirabe::sidecar
