#include "trial/local/attempt_endpoints.h"

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/open_beneath.h"
#include "base/rng.h"
#include "trial/local/trial_environment.h"

namespace shirabe::trial {
namespace {

constexpr char kTrainerUrlBegin[] = "http://127.0.0.1:";
constexpr int kTrainerTokenBytes = 24;
constexpr int64_t kMaxTrainerFile = 1 << 12;  // bytes
constexpr int kFirstOwnPort = 1024;           // a program may have changed what it was told

std::string StatusPath(const AttemptKey& key) {
  return absl::StrCat("/trainer-status/", key.trial.experiment.ns, "/", AttemptName(key));
}

std::string UrlAt(uint16_t port, const AttemptKey& key) {
  return absl::StrCat(kTrainerUrlBegin, port, StatusPath(key));
}

}  // namespace

Environment TrainerVariables(const std::string& url, const std::string& token_file) {
  return {{"KUBEFLOW_TRAINER_SERVER_URL", url}, {"KUBEFLOW_TRAINER_SERVER_TOKEN", token_file}};
}

StatusOr<TrainerAddress> ParseTrainerUrl(const std::string& url) {
  constexpr size_t kBegin = sizeof kTrainerUrlBegin - 1;
  const size_t slash = url.find('/', kBegin);
  int port = 0;
  if (absl::StartsWith(url, kTrainerUrlBegin) && slash != std::string::npos &&
      absl::SimpleAtoi(url.substr(kBegin, slash - kBegin), &port) && port > 0 && port <= 65535) {
    return TrainerAddress{.port = static_cast<uint16_t>(port), .path = url.substr(slash)};
  }
  return absl::InvalidArgumentError("not an address http://127.0.0.1:PORT/PATH");
}

std::string MakeTrainerToken() { return absl::BytesToHexString(RandomBytes(kTrainerTokenBytes)); }

AttemptEndpoints::AttemptEndpoints(const FileLayout* layout, const StatusHandlers& handlers)
    : layout_(layout),
      handlers_(handlers),
      endpoint_(handlers.make ? StatusEndpoint::Create(handlers.max_body) : nullptr) {}

StatusOr<uint16_t> AttemptEndpoints::Port(uint16_t wanted) {
  const MutexLock lock(mutex_);
  if (wanted == 0 && port_ != 0) return port_;
  ASSIGN_OR_RETURN(const uint16_t port, endpoint_->Listen(wanted));
  if (port_ == 0) port_ = port;
  return port;
}

Environment AttemptEndpoints::Variables(const AttemptKey& key) {
  if (endpoint_ == nullptr) return {};
  const auto port = Port(0);
  if (port.ok()) {
    return TrainerVariables(UrlAt(*port, key), layout_->Paths(key).dir + "/" + kTrainerTokenFile);
  }
  Log(LogLevel::kWarning, "programs cannot report over HTTP",
      {{"attempt", AttemptName(key)}, {"error", Message(port.status())}});
  return {};
}

Status AttemptEndpoints::Open(const AttemptKey& key) {
  if (endpoint_ == nullptr) return absl::OkStatus();
  const auto port = Port(0);
  if (!port.ok()) return absl::OkStatus();  // it was given no variables
  const std::string dir = layout_->Paths(key).dir + "/";
  const std::string token = MakeTrainerToken();
  RETURN_IF_ERROR(WriteInput(dir + kTrainerUrlFile, UrlAt(*port, key)));
  RETURN_IF_ERROR(WriteInput(dir + kTrainerTokenFile, token));
  Add(key, token);
  return absl::OkStatus();
}

void AttemptEndpoints::Add(const AttemptKey& key, const std::string& token) {
  {
    const MutexLock lock(mutex_);
    known_.insert(key);
  }
  endpoint_->Add(StatusPath(key), token, handlers_.make(layout_->Paths(key).metrics_file));
}

void AttemptEndpoints::Adopt(const AttemptKey& key) {
  if (endpoint_ == nullptr) return;
  {
    const MutexLock lock(mutex_);
    if (known_.contains(key)) return;
  }
  const Status adopted = AdoptFromFiles(key);
  // One that was started by an older release has none.
  if (adopted.ok() || absl::IsNotFound(adopted)) return;
  Log(LogLevel::kWarning, "an adopted program cannot report over HTTP",
      {{"attempt", AttemptName(key)}, {"error", Message(adopted)}});
}

Status AttemptEndpoints::AdoptFromFiles(const AttemptKey& key) {
  const std::string dir = layout_->Paths(key).dir + "/";
  const auto read = [&](const char* name) {
    return ReadBeneath(layout_->home(), dir + name, kMaxTrainerFile);
  };
  ASSIGN_OR_RETURN(const std::string url, read(kTrainerUrlFile));
  ASSIGN_OR_RETURN(const std::string token, read(kTrainerTokenFile));
  ASSIGN_OR_RETURN(const TrainerAddress address, ParseTrainerUrl(url));
  if (address.path != StatusPath(key) || address.port < kFirstOwnPort || token.empty()) {
    return absl::DataLossError(dir + kTrainerUrlFile + " is not as it was written");
  }
  RETURN_IF_ERROR(Port(address.port).status());
  Add(key, token);
  return absl::OkStatus();
}

void AttemptEndpoints::Close(const AttemptKey& key) {
  if (endpoint_ == nullptr) return;
  {
    const MutexLock lock(mutex_);
    known_.erase(key);
  }
  endpoint_->Remove(StatusPath(key));
}

}  // namespace shirabe::trial
