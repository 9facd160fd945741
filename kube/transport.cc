#include "kube/transport.h"

#include <algorithm>
#include <utility>

#include "kube/http_stream.h"

namespace shirabe::kube {
namespace {

// As many as ask at the same time: what is closed and opened again costs both ends a handshake.
constexpr size_t kMaxIdleConnections = 32;
// API servers close what is idle for 90 seconds or more; ours are closed before.
constexpr absl::Duration kMaxIdleTime = absl::Seconds(60);
constexpr absl::Duration kMaxBackoffDelay = absl::Seconds(10);

bool IsBusy(int status) { return status == 429 || status == 503; }
// The server is at fault, or a proxy before it, and how far the request came is not known.
bool IsBroken(int status) { return status == 500 || status == 502 || status == 504; }

bool MayHaveBeenApplied(const Exchange& exchange) {
  if (exchange.stage == ExchangeStage::kAnswered) return IsBroken(exchange.answer.status);
  return exchange.stage != ExchangeStage::kNotSent;
}

bool IsRetryable(const Exchange& exchange, Idempotency repeat) {
  if (exchange.stage == ExchangeStage::kAnswered) {
    const int status = exchange.answer.status;
    return IsBusy(status) || (IsBroken(status) && repeat == Idempotency::kIdempotent);
  }
  // What was not reached may be there in a moment; a wrong certificate, credential or a too large
  // answer will be the same.
  const bool passing =
      absl::IsUnavailable(exchange.status) || absl::IsDeadlineExceeded(exchange.status);
  return passing &&
         (exchange.stage == ExchangeStage::kNotSent || repeat == Idempotency::kIdempotent);
}

// A review (kube/token_reviewer.h) is sent as an object, and leaves none.
bool IsRead(const HttpRequest& request) {
  return request.method == "GET" || request.target.starts_with("/apis/authentication.k8s.io/") ||
         request.target.starts_with("/apis/authorization.k8s.io/");
}

Exchange Failed(const Status& status) {
  Exchange exchange;
  exchange.status = status;
  return exchange;
}

}  // namespace

Transport::Transport(const Config& config, Endpoint endpoint, Clock* clock,
                     const ClientOptions& options)
    : config_(config),
      clock_(clock),
      options_(options),
      endpoint_(std::move(endpoint)),
      credentials_(config, clock),
      rng_(RandomSeed()) {}

StatusOr<std::unique_ptr<Transport>> Transport::Create(const Config& config, Clock* clock,
                                                       const ClientOptions& options) {
  ASSIGN_OR_RETURN(Endpoint endpoint, ParseServer(config.server, config.server_name));
  auto transport = std::make_unique<Transport>(config, std::move(endpoint), clock, options);
  // A plugin may bring another certificate, but those of the file show now whether they are good.
  const Credential told{.certificate = config.certificate, .key = config.key};
  RETURN_IF_ERROR(transport->TlsFor(told).status());
  return transport;
}

// Shared, because a connection may be about to be made with the one before when a plugin has
// brought another certificate; what was connected with that is closed.
StatusOr<Transport::TlsPtr> Transport::TlsFor(const Credential& credential) {
  const std::lock_guard lock(mutex_);
  if (!endpoint_.tls || (tls_ != nullptr && certificate_ == credential.certificate)) return tls_;
  ASSIGN_OR_RETURN(tls_, MakeTls(config_, credential.certificate, credential.key));
  certificate_ = credential.certificate;
  idle_.clear();
  return tls_;
}

std::unique_ptr<HttpStream> Transport::PopIdle() {
  const std::lock_guard lock(mutex_);
  while (!idle_.empty()) {
    Idle last = std::move(idle_.back());
    idle_.pop_back();
    if (clock_->Monotonic() - last.since < kMaxIdleTime && last.connection->reusable()) {
      return std::move(last.connection);
    }
  }
  return nullptr;
}

void Transport::Keep(std::unique_ptr<HttpStream> connection, const TlsPtr& made_with) {
  if (!connection->reusable()) return;
  const std::lock_guard lock(mutex_);
  if (made_with != tls_ || idle_.size() >= kMaxIdleConnections) return;
  idle_.push_back({std::move(connection), clock_->Monotonic()});
}

Exchange Transport::OnceAs(HttpRequest request, const Credential& credential, const Try& attempt) {
  auto tls = TlsFor(credential);
  if (!tls.ok()) return Failed(tls.status());
  std::unique_ptr<HttpStream> connection = attempt.sink == nullptr ? PopIdle() : nullptr;
  if (connection == nullptr) {
    auto opened = HttpStream::Open(endpoint_, tls->get(), options_.connect, attempt.stop);
    if (!opened.ok()) return Failed(opened.status());
    connection = *std::move(opened);
  }
  if (!IsRead(request) && options_.may_write && !options_.may_write()) {
    return Failed(absl::UnavailableError("this process does not lead now: nothing is written"));
  }
  request.authorization = credential.authorization;
  Exchange exchange = connection->Do(request, attempt.waits, attempt.sink, attempt.stop);
  Keep(std::move(connection), *tls);
  return exchange;
}

void Transport::Count(const HttpRequest& request, const Exchange& exchange) {
  if (options_.counts == nullptr) return;
  RequestKind kind = ClassifyRequest(request.method, request.target, request.content_type);
  const bool answered = exchange.answer.status != 0;
  kind.code = answered ? std::to_string(exchange.answer.status) : "none";
  options_.counts->Add(std::move(kind));
}

Exchange Transport::Once(const HttpRequest& request, const Try& attempt) {
  for (int tried = 1;; ++tried) {
    const auto credential = credentials_.Current();
    // A token file that is not there must not look like an object that is not there.
    if (!credential.ok()) return Failed(absl::PermissionDeniedError(credential.status().message()));
    Exchange exchange = OnceAs(request, *credential, attempt);
    Count(request, exchange);
    const bool refused =
        exchange.stage == ExchangeStage::kAnswered && exchange.answer.status == 401;
    if (!refused || tried == 2 || !credentials_.Renew(credential->generation)) return exchange;
  }
}

absl::Duration Transport::BackoffDelay(int tried, const HttpResponse& answer) {
  const std::lock_guard lock(mutex_);
  absl::Duration wait = options_.backoff * (1 << std::min(tried - 1, 10));
  wait = std::max(wait, answer.retry_after.value_or(absl::ZeroDuration()));
  // With jitter, so that those who were refused together do not come back together.
  return std::min(wait, kMaxBackoffDelay) * (1 + 0.5 * rng_.Uniform());
}

StatusOr<Transport::Reply> Transport::Call(const HttpRequest& request, Idempotency repeat) {
  const absl::Duration deadline = clock_->Monotonic() + options_.patience;
  Try attempt;
  attempt.waits.answer = options_.answer;
  bool maybe_applied = false;
  for (int tried = 1;; ++tried) {
    Exchange exchange = Once(request, attempt);
    const bool again = IsRetryable(exchange, repeat);
    const absl::Duration wait = again ? BackoffDelay(tried, exchange.answer) : absl::ZeroDuration();
    if (!again || tried >= options_.tries || clock_->Monotonic() + wait > deadline) {
      RETURN_IF_ERROR(exchange.status);
      return Reply{std::move(exchange.answer), maybe_applied};
    }
    maybe_applied |= MayHaveBeenApplied(exchange);
    Pause(wait);
  }
}

StatusOr<HttpResponse> Transport::Stream(const HttpRequest& request, absl::Duration silence,
                                         const BodyCallback& sink, std::stop_token stop) {
  Try attempt{.sink = &sink, .stop = std::move(stop)};
  attempt.waits.answer = options_.answer;
  attempt.waits.silence = silence;
  Exchange exchange = Once(request, attempt);
  RETURN_IF_ERROR(exchange.status);
  return std::move(exchange.answer);
}

}  // namespace shirabe::kube
