#include "kube/transport.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace shirabe::kube {
namespace {

using net::ExchangeStage;
using net::HttpExchange;

constexpr absl::Duration kMaxBackoffDelay = absl::Seconds(10);

bool IsBusy(int status) { return status == 429 || status == 503; }
// The server is at fault, or a proxy before it, and how far the request came is not known.
bool IsBroken(int status) { return status == 500 || status == 502 || status == 504; }

bool MayHaveBeenApplied(const HttpExchange& exchange) {
  if (exchange.stage == ExchangeStage::kAnswered) return IsBroken(exchange.answer.status);
  return exchange.stage != ExchangeStage::kNotSent;
}

bool IsRetryable(const HttpExchange& exchange, Idempotency repeat) {
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

// Only the form in seconds: the other, a date, would need the server's clock.
absl::Duration RetryAfter(const HttpResponse& answer) {
  int seconds = 0;
  if (!absl::SimpleAtoi(answer.Header("retry-after"), &seconds)) return absl::ZeroDuration();
  return absl::Seconds(std::max(seconds, 0));
}

net::TlsOptions TlsOf(const Config& config, const Credential& credential) {
  return {.ca = config.ca,
          .certificate = credential.certificate,
          .key = credential.key,
          .server_name = config.server_name,
          .insecure = config.insecure};
}

// The fields of a kubeconfig that CheckTls speaks of.
Status CheckTlsOf(const Config& config) {
  const Status ca = net::CheckTls({.ca = config.ca});
  RETURN_IF_ERROR(Prefix("cluster.certificate-authority", ca));
  const Credential of_file{.certificate = config.certificate, .key = config.key};
  const Status pair = net::CheckTls(TlsOf(config, of_file));
  return pair.ok() ? pair : absl::InvalidArgumentError("user.client-" + Message(pair));
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
  // A plugin may bring another certificate, but those of the file show now whether they are good.
  if (endpoint.tls) RETURN_IF_ERROR(CheckTlsOf(config));
  auto transport = std::make_unique<Transport>(config, std::move(endpoint), clock, options);
  ASSIGN_OR_RETURN(transport->http_, net::HttpClient::Create());
  return transport;
}

HttpExchange Transport::OnceAs(const HttpRequest& request, const Credential& credential,
                               const Try& attempt) {
  net::HttpCall call{.request = request,
                     .origin = endpoint_.Origin(),
                     .tls = TlsOf(config_, credential),
                     .limits = attempt.limits};
  call.request.target = endpoint_.prefix + request.target;
  // Before the request's own, which counts more.
  call.request.headers.insert(call.request.headers.begin(),
                              {"Accept", "application/json, */*;q=0.1"});
  if (!credential.authorization.empty()) {
    call.request.headers.emplace_back("Authorization", credential.authorization);
  }
  if (!IsRead(request) && options_.may_write) {
    call.before_send = [this] {
      if (options_.may_write()) return absl::OkStatus();
      return absl::UnavailableError("this process does not lead now: nothing is written");
    };
  }
  HttpExchange exchange = http_->Do(call, attempt.sink, attempt.stop);
  if (absl::IsFailedPrecondition(exchange.status)) {
    exchange.status = absl::FailedPreconditionError(
        absl::StrCat(Message(exchange.status), ", ", endpoint_.name,
                     ": correct certificate-authority or tls-server-name in the kubeconfig"));
  }
  return exchange;
}

void Transport::Count(const HttpRequest& request, const HttpExchange& exchange) {
  if (options_.counts == nullptr) return;
  RequestKind kind = ClassifyRequest(request.method, request.target, request.content_type);
  const bool answered = exchange.answer.status != 0;
  kind.code = answered ? std::to_string(exchange.answer.status) : "none";
  options_.counts->Add(std::move(kind));
}

HttpExchange Transport::Once(const HttpRequest& request, const Try& attempt) {
  for (int tried = 1;; ++tried) {
    const auto credential = credentials_.Current();
    // A token file that is not there must not look like an object that is not there.
    if (!credential.ok()) {
      return {.status = absl::PermissionDeniedError(credential.status().message())};
    }
    HttpExchange exchange = OnceAs(request, *credential, attempt);
    Count(request, exchange);
    const bool refused =
        exchange.stage == ExchangeStage::kAnswered && exchange.answer.status == 401;
    if (!refused || tried == 2 || !credentials_.Renew(credential->generation)) return exchange;
  }
}

absl::Duration Transport::BackoffDelay(int tried, const HttpResponse& answer) {
  const MutexLock lock(mutex_);
  absl::Duration wait = options_.backoff * (1 << std::min(tried - 1, 10));
  wait = std::max(wait, RetryAfter(answer));
  // With jitter, so that those who were refused together do not come back together.
  return std::min(wait, kMaxBackoffDelay) * (1 + 0.5 * rng_.Uniform());
}

StatusOr<Transport::Reply> Transport::Call(const HttpRequest& request, Idempotency repeat) {
  const absl::Duration deadline = clock_->Monotonic() + options_.patience;
  const Try attempt{.limits = {.connect = options_.connect, .answer = options_.answer}};
  bool maybe_applied = false;
  for (int tried = 1;; ++tried) {
    HttpExchange exchange = Once(request, attempt);
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
  const Try attempt{
      .limits = {.connect = options_.connect, .answer = options_.answer, .silence = silence},
      .sink = &sink,
      .stop = std::move(stop)};
  HttpExchange exchange = Once(request, attempt);
  RETURN_IF_ERROR(exchange.status);
  return std::move(exchange.answer);
}

}  // namespace shirabe::kube
