#include "metrics/http_scraper.h"

#include <fcntl.h>
#include <unistd.h>

#include <cmath>
#include <optional>
#include <stop_token>
#include <string_view>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "base/file_io.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/open_beneath.h"
#include "base/text/json_text.h"
#include "base/text/number.h"
#include "metrics/json_line.h"
#include "metrics/prometheus_text.h"
#include "metrics/terminal_text.h"
#include "net/http_client.h"

namespace shirabe::metrics {
namespace {

// Between two requests, before the first answer and after it.
constexpr absl::Duration kFirstScrapeInterval = absl::Milliseconds(250);
constexpr absl::Duration kInterval = absl::Seconds(1);
constexpr absl::Duration kDeadline = absl::Seconds(2);
constexpr absl::Duration kLease = absl::Seconds(10);
constexpr size_t kMaxPage = 4 << 20;

std::string HostOf(const ScrapeTarget& target) {
  const bool v6 = target.address.find(':') != std::string::npos;
  return absl::StrCat(v6 ? "[" : "", target.address, v6 ? "]" : "", ":", target.port);
}

// Which program of this machine is asked, and for whom: two trials that both believe to own a port
// would otherwise get the values of the one that really does.
class Claims {
 public:
  static Claims& Get() {
    static Claims claims;
    return claims;
  }

  // True if it is the file's now.
  bool Claim(const std::string& address, const std::string& file) {
    const MutexLock lock(mutex_);
    return owners_.try_emplace(address, file).first->second == file;
  }

  void Release(const std::string& address, const std::string& file) {
    const MutexLock lock(mutex_);
    const auto found = owners_.find(address);
    if (found != owners_.end() && found->second == file) owners_.erase(found);
  }

 private:
  Mutex mutex_;
  std::map<std::string, std::string> owners_ ABSL_GUARDED_BY(mutex_);
};

// Appends whole lines. A line that an earlier process was killed in the midst of is ended first.
class Journal {
 public:
  explicit Journal(std::string path) : path_(std::move(path)) {}

  void Append(std::string lines) {
    if (lines.empty()) return;
    const auto fd = OpenBeneath("", path_, O_RDWR | O_APPEND | O_CREAT);
    if (!fd.ok()) return Complain(fd.status());
    char last = '\n';
    const off_t size = lseek(fd->get(), 0, SEEK_END);
    if (size > 0 && pread(fd->get(), &last, 1, size - 1) != 1) {
      return Complain(ErrnoStatus("cannot read it", errno));
    }
    if (last != '\n') lines.insert(0, "\n");
    const ssize_t written = write(fd->get(), lines.data(), lines.size());
    if (written != static_cast<ssize_t>(lines.size())) {
      Complain(ErrnoStatus("cannot write to it", errno));
    }
  }

 private:
  void Complain(const Status& status) {
    if (std::exchange(complained_, true)) return;
    Log(LogLevel::kWarning, "failed to write scraped metrics",
        {{"file", path_}, {"error", Message(status)}});
  }

  const std::string path_;
  bool complained_ = false;
};

using ClientPtr = StatusOr<std::unique_ptr<net::HttpClient>>;

// One target, asked by a thread of its own: one that hangs holds up no other.
class Probe {
 public:
  // The client outlives it.
  Probe(const ClientPtr& client, ScrapeTarget target)
      : client_(client),
        target_(std::move(target)),
        address_(HostOf(target_)),
        journal_(target_.file),
        memory_(target_.metrics, target_.file) {
    Renew();
    thread_ = std::jthread([this](std::stop_token stop) { Run(stop); });
  }

  void Renew() {
    const MutexLock lock(mutex_);
    renewed_ = RealClock()->Monotonic();
  }

  bool Expired() {
    const MutexLock lock(mutex_);
    return RealClock()->Monotonic() - renewed_ > kLease;
  }

 private:
  void Run(const std::stop_token& stop) {
    while (!stop.stop_requested() && !Expired()) {
      Ask(stop);
      MutexLock lock(mutex_);
      changed_.SleepFor(lock, stop, answered_ ? kInterval : kFirstScrapeInterval);
    }
    Claims::Get().Release(address_, target_.file);
  }

  void Ask(const std::stop_token& stop) {
    if (!Claims::Get().Claim(address_, target_.file)) {
      return Comment(absl::StrCat("! another trial of this machine is asked at ", UrlOf(target_),
                                  ": give each a port of its own"));
    }
    if (!client_.ok()) return Comment(absl::StrCat("! ", Message(client_.status())));
    const net::HttpExchange exchange = (*client_)->Do(Call(), nullptr, stop);
    if (stop.stop_requested()) return;
    const net::HttpResponse& answer = exchange.answer;
    if (!exchange.status.ok()) {
      // Not listening yet, or no more.
      if (exchange.stage == net::ExchangeStage::kNotSent) return;
      return Comment(absl::StrCat("# no answer: ", Excerpt(Message(exchange.status))));
    }
    if (answer.status != 200) {
      return Comment(absl::StrCat("# answered ", answer.status, " ", Excerpt(answer.reason)));
    }
    const bool open_metrics = absl::StrContains(answer.Header("content-type"), "openmetrics");
    journal_.Append(memory_.LinesFor(answer.body, open_metrics, RealClock()->Now()));
    answered_ = true;
  }

  // The trial's own program is asked, and no other.
  net::HttpCall Call() const {
    net::HttpCall call{
        .request = {.target = target_.path,
                    .headers = {{"Accept", "text/plain;version=0.0.4;q=1,*/*;q=0.1"},
                                {"Connection", "close"}}},
        .origin = "http://" + address_,
        .limits = {.connect = kDeadline, .answer = kDeadline, .body_bytes = kMaxPage},
        .may_connect = net::IsLoopback};
    net::HttpHeaders& headers = call.request.headers;
    headers.insert(headers.end(), target_.headers.begin(), target_.headers.end());
    return call;
  }

  void Comment(const std::string& line) { journal_.Append(memory_.AddComment(line)); }

  const ClientPtr& client_;
  const ScrapeTarget target_;
  const std::string address_;
  Mutex mutex_;
  CondVar changed_;
  absl::Duration renewed_ ABSL_GUARDED_BY(mutex_);  // monotonic
  // Of the thread.
  Journal journal_;
  ScrapeState memory_;
  bool answered_ = false;
  std::jthread thread_;  // last: it uses all of the above
};

class HttpScraper : public Scraper {
 public:
  void Watch(const ScrapeTarget& target) override {
    const MutexLock lock(mutex_);
    if (probes_.empty() && !client_.ok()) client_ = net::HttpClient::Create();
    auto& probe = probes_[target.file];
    if (probe != nullptr && !probe->Expired()) return probe->Renew();
    probe = nullptr;  // its thread has ended, or ends now
    probe = std::make_unique<Probe>(client_, target);
  }

  void Drop(const std::string& file) override {
    const MutexLock lock(mutex_);
    probes_.erase(file);
  }

 private:
  Mutex mutex_;
  ClientPtr client_ = absl::UnavailableError("nothing was asked yet");  // set before any probe
  std::map<std::string, std::unique_ptr<Probe>> probes_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

std::string UrlOf(const ScrapeTarget& target) {
  return absl::StrCat("http://", HostOf(target), target.path);
}

std::unique_ptr<Scraper> MakeScraper() { return std::make_unique<HttpScraper>(); }

// What is new on a page of metrics, and how it is kept in a file.

namespace {

constexpr int kPageTailLines = 1000;
constexpr int64_t kPageTailBytes = 1 << 18;
constexpr size_t kShownNames = 5;

// A metric whose name is no name of Prometheus' stands for itself.
Series SeriesOf(const std::string& metric) {
  const std::optional<Series> series = ParseSeries(metric);
  return series ? *series : Series{metric, {}};
}

std::optional<int64_t> StepOf(const Exposition& page) {
  std::string why;
  for (const char* name : {"step", "global_step"}) {
    const Sample* sample = FindSample(page, {name, {}}, why);
    if (sample == nullptr || !(sample->value >= 0 && sample->value < 0x1p62)) continue;
    return static_cast<int64_t>(std::floor(sample->value));
  }
  return std::nullopt;
}

std::string ServedNames(const Exposition& page) {
  std::vector<std::string> names;
  for (const Sample& sample : page.samples) {
    const std::string name = Excerpt(sample.series.name, 63);
    if (names.empty() || names.back() != name) names.push_back(name);
  }
  const bool more = names.size() > kShownNames;
  if (more) names.resize(kShownNames);
  return absl::StrCat(absl::StrJoin(names, ", "), more ? ", …" : "");
}

class ScrapeParser : public LineParser {
 public:
  explicit ScrapeParser(std::unique_ptr<LineParser> json) : json_(std::move(json)) {}

  void Parse(std::string_view line, ParsedLine& out) const override {
    out.Clear();
    if (line.substr(0, 1) == "#") return;
    if (line.substr(0, 2) != "! ") return json_->Parse(line, out);
    out.bad = Excerpt(line.substr(2), 400);
  }

  bool ReturnEndsLine() const override { return false; }

 private:
  const std::unique_ptr<LineParser> json_;
};

}  // namespace

std::unique_ptr<LineParser> MakeScrapeParser(std::vector<std::string> metrics) {
  return std::make_unique<ScrapeParser>(MakeJsonParser(std::move(metrics)));
}

ScrapeState::ScrapeState(std::vector<std::string> metrics, const std::string& file)
    : metrics_(std::move(metrics)) {
  const auto parser = MakeScrapeParser(metrics_);
  ParsedLine parsed;
  const std::string text = TailBeneath("", file, kPageTailLines, kPageTailBytes);
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    parser->Parse(line, parsed);
    for (const ParsedObservation& observation : parsed.observations)
      last_[metrics_[observation.metric]] = observation;
    if (line.substr(0, 1) == "#" || line.substr(0, 1) == "!") remark_ = std::string(line);
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
  }
}

std::string ScrapeState::LinesFor(std::string_view page, bool open_metrics, absl::Time now) {
  const Exposition exposition = ParseExposition(page, open_metrics);
  const std::optional<int64_t> step = StepOf(exposition);
  std::string lines;
  std::string unclear;
  bool found = false;
  for (const std::string& metric : metrics_) {
    std::string why;
    const Sample* sample = FindSample(exposition, SeriesOf(metric), why);
    if (!why.empty() && unclear.empty()) unclear = why;
    if (sample == nullptr) continue;
    found = true;
    ParsedObservation observation{.value = sample->value, .step = step, .time = sample->time};
    const auto last = last_.find(metric);
    const bool known = last != last_.end() && SameNumber(last->second.value, observation.value) &&
                       last->second.step == step &&
                       (!observation.time || last->second.time == observation.time);
    if (known) continue;
    if (!observation.time) observation.time = now;
    last_[metric] = observation;
    lines += PointLine(metric, observation);
  }
  if (!unclear.empty()) return lines + AddComment("! " + unclear);
  if (found || exposition.samples.empty()) return lines;
  return AddComment(absl::StrCat("# answered, with other names: ", ServedNames(exposition)));
}

std::string ScrapeState::AddComment(const std::string& line) {
  if (line == remark_) return "";
  remark_ = line;
  return line + "\n";
}

std::string ScrapeState::PointLine(const std::string& metric,
                                   const ParsedObservation& observation) {
  const std::string step =
      observation.step ? absl::StrCat("\"step\": ", *observation.step, ", ") : "";
  const double seconds = absl::ToDoubleSeconds(*observation.time - absl::UnixEpoch());
  const std::string key = JsonQuoted(metric);
  return absl::StrCat("{", step, "\"timestamp\": ", FormatNumber(seconds), ", \"metrics\": {", key,
                      ": ", FormatNumber(observation.value), "}}\n");
}

}  // namespace shirabe::metrics
