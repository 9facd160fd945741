#include "notify/webhook.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/sha256.h"
#include "base/text/json_text.h"
#include "net/address_scope.h"
#include "net/http_client.h"
#include "net/url.h"
#include "notify/endpoints.h"

namespace shirabe::notify {
namespace {

constexpr absl::Duration kConnectTimeout = absl::Seconds(5);
constexpr absl::Duration kAnswerTimeout = absl::Seconds(10);
constexpr size_t kMaxAnswer = 64 << 10;
constexpr size_t kMaxSlackText = 3000;  // Slack cuts a message at 40,000; people stop earlier
constexpr absl::Duration kMaxRetryAfter = absl::Hours(1);

// What users of the experiment are told: neither the address nor what libcurl says of it.
Status InWords(const net::HttpExchange& exchange) {
  const std::string name = "the endpoint ";
  switch (exchange.status.code()) {
    case absl::StatusCode::kDeadlineExceeded:
      return absl::DeadlineExceededError(name + "did not answer in time");
    case absl::StatusCode::kFailedPrecondition:
      return absl::FailedPreconditionError(name + "shows a certificate that is not trusted here");
    case absl::StatusCode::kPermissionDenied:
      return absl::PermissionDeniedError(
          name +
          "is at an address of this machine, of a private network or of none that may be asked "
          "(allowPrivateAddresses of the administrator's entry)");
    case absl::StatusCode::kCancelled: return absl::CancelledError("this server is stopping");
    case absl::StatusCode::kResourceExhausted:
      return absl::ResourceExhaustedError(name + "answered with too much");
    default: return absl::UnavailableError(name + "could not be reached, or broke off");
  }
}

// What the administrator finds in the log. The path of the URL may be a secret.
std::string WithoutPath(const net::HttpExchange& exchange, const net::HttpCall& call) {
  return absl::StrReplaceAll(Message(exchange.status), {{call.request.target, "/…"}});
}

bool IsGood(int status) { return status >= 200 && status < 300; }

absl::Duration RetryAfter(const net::HttpResponse& answer) {
  int64_t seconds = 0;  // the form with a date is ignored: our own delay does
  if (!absl::SimpleAtoi(answer.Header("retry-after"), &seconds) || seconds < 0) {
    return absl::ZeroDuration();
  }
  return std::min(absl::Seconds(seconds), kMaxRetryAfter);
}

std::string OriginOf(const net::Url& url) {
  const bool v6 = url.host.find(':') != std::string::npos;
  return absl::StrCat(url.tls ? "https://" : "http://", v6 ? "[" : "", url.host, v6 ? "]" : "", ":",
                      url.port);
}

class WebhookSender : public Sender {
 public:
  explicit WebhookSender(Clock* clock) : clock_(clock) {}

  SendResult Send(const Notification& notification, std::stop_token stop) override {
    const auto call = CallFor(notification);
    if (!call.ok()) return {call.status(), absl::ZeroDuration()};
    const auto client = Client();
    if (!client.ok()) return {client.status(), absl::ZeroDuration()};
    // Of an answer 200 nothing is read; others have a limit.
    const net::BodyCallback enough = [](std::string_view) { return false; };
    const net::HttpExchange exchange = (*client)->Do(*call, &enough, std::move(stop));
    const int status = exchange.answer.status;
    if (IsGood(status)) return {absl::OkStatus(), absl::ZeroDuration()};
    if (exchange.status.ok()) {
      return {absl::UnavailableError(absl::StrCat("the endpoint answered HTTP ", status)),
              RetryAfter(exchange.answer)};
    }
    Log(LogLevel::kInfo, "a notification was not delivered",
        {{"endpoint", notification.endpoint}, {"error", WithoutPath(exchange, *call)}});
    return {InWords(exchange), absl::ZeroDuration()};
  }

 private:
  // Opened with the first notification: a process without any needs none.
  StatusOr<net::HttpClient*> Client() {
    const MutexLock lock(mutex_);
    if (client_ == nullptr) {
      ASSIGN_OR_RETURN(client_, net::HttpClient::Create());
    }
    return client_.get();
  }

  StatusOr<net::HttpCall> CallFor(const Notification& notification) {
    ASSIGN_OR_RETURN(const v1::NotificationEndpoint endpoint,
                     FindEndpoint(notification.endpoint, notification.ns));
    const auto url_text = UrlOf(endpoint);
    const auto secret = SecretOf(endpoint);
    const auto url = url_text.ok() ? net::ParseUrl(*url_text) : url_text.status();
    for (const Status& read : {url.status(), secret.status()}) {
      if (read.ok()) continue;
      Log(LogLevel::kWarning, "the entry of an endpoint cannot be used",
          {{"error", Message(read)}});
      return absl::UnavailableError("the administrator's entry of the endpoint cannot be used now");
    }
    net::HttpCall call;
    call.origin = OriginOf(*url);
    call.limits = {.connect = kConnectTimeout, .answer = kAnswerTimeout, .body_bytes = kMaxAnswer};
    call.may_connect = [allowed = endpoint.allow_private_addresses()](const sockaddr& address) {
      const net::AddressScope scope = net::ScopeOf(address);
      return scope == net::AddressScope::kPublic ||
             (scope == net::AddressScope::kPrivate && allowed);
    };
    const bool slack = endpoint.format() == v1::WEBHOOK_SLACK;
    call.request = {.method = "POST",
                    .target = url->path,
                    .content_type = "application/json",
                    .body = slack ? SlackBody(notification.body) : notification.body};
    const std::string timestamp = absl::StrCat(absl::ToUnixSeconds(clock_->Now()));
    call.request.headers = {{"Shirabe-Id", notification.id}, {"Shirabe-Timestamp", timestamp}};
    if (!secret->empty()) {
      call.request.headers.emplace_back("Shirabe-Signature",
                                        Signature(*secret, timestamp, call.request.body));
    }
    return call;
  }

  Clock* const clock_;
  Mutex mutex_;
  std::unique_ptr<net::HttpClient> client_ ABSL_GUARDED_BY(mutex_);
};

std::string TextAt(const nlohmann::json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  if (!object.is_object() || found == object.end() || !found->is_string()) return "";
  return found->get<std::string>();
}

// At the start of a character: not within the bytes of one.
std::string Shortened(std::string text, size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0) == 0x80) --most;
  return text.substr(0, most) + "…";
}

}  // namespace

std::unique_ptr<Sender> MakeWebhookSender(Clock* clock) {
  return EndpointsAreKnown() ? std::make_unique<WebhookSender>(clock) : nullptr;
}

std::string Signature(const std::string& secret, const std::string& timestamp,
                      const std::string& body) {
  return "v1=" + HexHmacSha256(secret, absl::StrCat(timestamp, ".", body));
}

std::string SlackBody(const std::string& body) {
  const auto json = ReadJsonOrDiscarded(body, kRequestJson);
  const auto experiment = json.is_object() ? json.value("experiment", nlohmann::json()) : json;
  const std::string text =
      absl::StrCat("Experiment ", TextAt(experiment, "namespace"), "/", TextAt(experiment, "name"),
                   ": ", TextAt(json, "type"), ". ", TextAt(json, "message"));
  // Slack's three control characters; with them gone nothing is a mention, a channel or a link.
  const std::string plain = absl::StrReplaceAll(Shortened(text, kMaxSlackText),
                                                {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}});
  const nlohmann::json slack = {{"text", plain}, {"unfurl_links", false}, {"mrkdwn", false}};
  return JsonText(slack);
}

}  // namespace shirabe::notify
