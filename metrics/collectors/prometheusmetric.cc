// Katib's PrometheusMetric: the program serves its metrics itself, at the URL of source.httpGet,
// and is asked for them while it runs; see http_scraper.h.
#include <arpa/inet.h>
#include <netinet/in.h>

#include <memory>
#include <optional>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/file_io.h"
#include "base/mutex.h"
#include "base/open_beneath.h"
#include "base/text/number.h"
#include "metrics/attempt_reader.h"
#include "metrics/collector.h"
#include "metrics/describe_source.h"
#include "metrics/http_scraper.h"
#include "metrics/terminal_text.h"
#include "net/http_client.h"

namespace shirabe::metrics {
namespace {

constexpr char kHttpGet[] = "spec.metricsCollectorSpec.source.httpGet.";

Status RefuseSource(const std::string& field, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat(kHttpGet, field, ": ", why));
}

StatusOr<uint16_t> PortOf(const google::protobuf::Value& port) {
  const std::optional<double> number = port.has_string_value() ? ParseNumber(port.string_value())
                                                               : std::optional(port.number_value());
  if (number && *number >= 1 && *number <= 65535 && *number == static_cast<int>(*number)) {
    return static_cast<uint16_t>(*number);
  }
  return RefuseSource("port", "must be a number from 1 to 65535");
}

// The trial's own program is asked, and no other: not what only the server can reach, and not the
// addresses that tell machines of a cloud their secrets.
StatusOr<std::string> AddressOf(const std::string& host) {
  if (host.empty() || host == "localhost") return std::string("127.0.0.1");
  const std::string text = host == "[::1]" ? "::1" : host;
  sockaddr_in v4{.sin_family = AF_INET};
  sockaddr_in6 v6{.sin6_family = AF_INET6};
  const bool own = inet_pton(AF_INET, text.c_str(), &v4.sin_addr) == 1
                       ? net::IsLoopback(reinterpret_cast<const sockaddr&>(v4))
                       : inet_pton(AF_INET6, text.c_str(), &v6.sin6_addr) == 1 &&
                             net::IsLoopback(reinterpret_cast<const sockaddr&>(v6));
  if (own) return text;
  return RefuseSource("host",
                      absl::StrCat("\"", Excerpt(host), "\" is not the trial's own address, ",
                                   "and no other is asked: leave it out, or write localhost"));
}

bool IsPlain(const std::string& text) {
  for (const unsigned char c : text) {
    if (c < 0x20 || c >= 0x7f) return false;
  }
  return !text.empty();
}

// Kubernetes' list of {name, value}.
Status ReadHeaders(const google::protobuf::Value& list, ScrapeTarget& target) {
  for (const google::protobuf::Value& item : list.list_value().values()) {
    const auto& fields = item.struct_value().fields();
    const auto name = fields.find("name");
    const auto value = fields.find("value");
    if (name == fields.end() || value == fields.end() || !IsPlain(name->second.string_value()) ||
        !IsPlain(value->second.string_value()) ||
        name->second.string_value().find_first_of(" :") != std::string::npos) {
      return RefuseSource("httpHeaders", "must be a list of {name: …, value: …} of plain text");
    }
    target.headers.emplace_back(name->second.string_value(), value->second.string_value());
  }
  return absl::OkStatus();
}

StatusOr<ScrapeTarget> TargetOf(const v1::HttpGetAction& http) {
  ScrapeTarget target;
  if (http.has_port()) {
    ASSIGN_OR_RETURN(target.port, PortOf(http.port()));
  }
  ASSIGN_OR_RETURN(target.address, AddressOf(http.host()));
  if (!http.path().empty()) target.path = http.path();
  if (target.path.front() != '/' || !IsPlain(target.path) ||
      target.path.find(' ') != std::string::npos) {
    return RefuseSource("path",
                        absl::StrCat("\"", Excerpt(target.path),
                                     "\" must begin with '/' and hold only ASCII, without spaces"));
  }
  if (!http.scheme().empty() && !absl::EqualsIgnoreCase(http.scheme(), "http")) {
    return RefuseSource("scheme", absl::StrCat("\"", Excerpt(http.scheme()),
                                               "\" is not supported: serve the metrics over HTTP"));
  }
  RETURN_IF_ERROR(ReadHeaders(http.http_headers(), target));
  return target;
}

class PrometheusCollector : public Collector {
 public:
  explicit PrometheusCollector(ScrapeTarget target) : target_(std::move(target)) {}

  StatusOr<Collected> Collect(const Source& source, const v1::CollectorCursor& cursor) override {
    const AttemptFiles& files = source.files;
    if (!files.scrapes.empty() && !files.copies) Follow(source);
    return ReadAttempt(source, LineSource(files.scrapes, MakeScrapeParser), cursor);
  }

  std::string Describe(const Source& source) const override {
    const std::string last = TailBeneath("", source.files.scrapes, 1, 1024);
    const std::string answer = last.empty()          ? "nothing answered there while it ran"
                               : last.front() == '{' ? "it answered"
                               : last.substr(0, 2) == "# "
                                   ? last.substr(2)
                                   : last.substr(std::min<size_t>(2, last.size()));
    return absl::StrCat("at ", UrlOf(target_), " (", Excerpt(answer, 400), ")");
  }

 private:
  // Most collectors are only made to see whether the specification is right.
  Scraper& scraper() {
    const MutexLock lock(mutex_);
    if (scraper_ == nullptr) scraper_ = MakeScraper();
    return *scraper_;
  }

  void Follow(const Source& source) {
    if (source.ended) return scraper().Drop(source.files.scrapes);
    ScrapeTarget target = target_;
    target.file = source.files.scrapes;
    for (const std::string& metric : source.metrics) {
      if (!metric.empty() && FindMetric(target.metrics, metric) < 0) {
        target.metrics.push_back(metric);
      }
    }
    scraper().Watch(target);
  }

  const ScrapeTarget target_;
  Mutex mutex_;
  std::unique_ptr<Scraper> scraper_ ABSL_GUARDED_BY(mutex_);
};

StatusOr<std::unique_ptr<Collector>> CreatePrometheus(const v1::MetricsCollectorSpec& spec) {
  ASSIGN_OR_RETURN(ScrapeTarget target, TargetOf(spec.source().http_get()));
  return std::make_unique<PrometheusCollector>(std::move(target));
}

}  // namespace

SHIRABE_REGISTER(CollectorInfo, {.name = "PrometheusMetric",
                                 .help = "what the program serves at a URL, asked while it runs",
                                 .create = CreatePrometheus});

}  // namespace shirabe::metrics
