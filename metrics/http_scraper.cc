#include "metrics/http_scraper.h"

#include <fcntl.h>
#include <unistd.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <cmath>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "base/file_io.h"
#include "base/log.h"
#include "base/open_beneath.h"
#include "base/text/number.h"
#include "metrics/json_line.h"
#include "metrics/prometheus_text.h"
#include "metrics/terminal_text.h"

namespace shirabe::metrics {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using boost::system::error_code;

// Between two requests, before the first answer and after it.
constexpr std::chrono::milliseconds kFirstScrapeInterval(250);
constexpr std::chrono::milliseconds kInterval(1000);
constexpr std::chrono::seconds kDeadline(2);
constexpr absl::Duration kLease = absl::Seconds(10);
constexpr uint64_t kMaxPage = 4 << 20;

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
    std::lock_guard lock(mutex_);
    return owners_.try_emplace(address, file).first->second == file;
  }

  void Release(const std::string& address, const std::string& file) {
    std::lock_guard lock(mutex_);
    const auto found = owners_.find(address);
    if (found != owners_.end() && found->second == file) owners_.erase(found);
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::string> owners_;  // guarded by mutex_
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

// One target. Its operations run in the scraper's thread; Drop and Renew may come from any.
class Probe : public std::enable_shared_from_this<Probe> {
 public:
  Probe(asio::io_context& context, ScrapeTarget target)
      : target_(std::move(target)),
        address_(HostOf(target_)),
        stream_(context),
        timer_(context),
        journal_(target_.file),
        memory_(target_.metrics, target_.file) {
    Renew();
  }
  ~Probe() { Claims::Get().Release(address_, target_.file); }

  void Renew() {
    std::lock_guard lock(mutex_);
    renewed_ = RealClock()->Monotonic();
  }

  bool Expired() {
    std::lock_guard lock(mutex_);
    return dropped_ || RealClock()->Monotonic() - renewed_ > kLease;
  }

  // From then on nothing is appended.
  void Drop() {
    std::lock_guard lock(mutex_);
    dropped_ = true;
    Claims::Get().Release(address_, target_.file);
  }

  // In the scraper's thread, like all that follows.
  void Ask() {
    if (Expired()) return Drop();
    if (!Claims::Get().Claim(address_, target_.file)) {
      Keep(memory_.AddComment(absl::StrCat("! another trial of this machine is asked at ",
                                           UrlOf(target_), ": give each a port of its own")));
      return Wait();
    }
    error_code error;
    const auto address = asio::ip::make_address(target_.address, error);
    stream_.expires_after(kDeadline);
    stream_.async_connect(tcp::endpoint(address, target_.port),
                          [self = shared_from_this()](error_code failed) {
                            if (failed) return self->Wait();  // not listening yet, or no more
                            self->Send();
                          });
  }

 private:
  void Send() {
    request_ = {http::verb::get, target_.path, 11};
    request_.set(http::field::host, address_);
    request_.set(http::field::user_agent, "shirabe");
    request_.set(http::field::accept, "text/plain;version=0.0.4;q=1,*/*;q=0.1");
    request_.set(http::field::connection, "close");
    for (const auto& [name, value] : target_.headers) request_.set(name, value);
    http::async_write(stream_, request_, [self = shared_from_this()](error_code failed, size_t) {
      if (failed) return self->Finish(failed);
      self->Receive();
    });
  }

  void Receive() {
    buffer_.clear();
    answer_.emplace();
    answer_->body_limit(kMaxPage);
    http::async_read(
        stream_, buffer_, *answer_,
        [self = shared_from_this()](error_code failed, size_t) { self->Finish(failed); });
  }

  void Finish(error_code failed) {
    if (failed) {
      Keep(memory_.AddComment(absl::StrCat("# no answer: ", Excerpt(failed.message()))));
    } else if (answer_->get().result() != http::status::ok) {
      const std::string reason(answer_->get().reason());
      Keep(memory_.AddComment(
          absl::StrCat("# answered ", answer_->get().result_int(), " ", Excerpt(reason))));
    } else {
      const std::string type(answer_->get()[http::field::content_type]);
      const bool open_metrics = type.find("openmetrics") != std::string::npos;
      Keep(memory_.LinesFor(answer_->get().body(), open_metrics, RealClock()->Now()));
      answered_ = true;
    }
    Wait();
  }

  void Wait() {
    stream_.close();
    timer_.expires_after(answered_ ? kInterval : kFirstScrapeInterval);
    timer_.async_wait([self = shared_from_this()](error_code stopped) {
      if (!stopped) self->Ask();
    });
  }

  void Keep(std::string lines) {
    std::lock_guard lock(mutex_);
    if (!dropped_) journal_.Append(std::move(lines));
  }

  const ScrapeTarget target_;
  const std::string address_;
  beast::tcp_stream stream_;
  asio::steady_timer timer_;
  http::request<http::empty_body> request_;
  std::optional<http::response_parser<http::string_body>> answer_;
  beast::flat_buffer buffer_;
  Journal journal_;  // guarded by mutex_
  ScrapeState memory_;
  bool answered_ = false;
  std::mutex mutex_;
  bool dropped_ = false;    // guarded by mutex_
  absl::Duration renewed_;  // guarded by mutex_; monotonic
};

class HttpScraper : public Scraper {
 public:
  ~HttpScraper() override {
    {
      std::lock_guard lock(mutex_);
      for (const auto& [file, probe] : probes_) probe->Drop();
    }
    context_.stop();
  }

  void Watch(const ScrapeTarget& target) override {
    std::lock_guard lock(mutex_);
    auto& probe = probes_[target.file];
    if (probe != nullptr && !probe->Expired()) return probe->Renew();
    probe = std::make_shared<Probe>(context_, target);  // shared with its pending operations
    asio::post(context_, [probe = probe] { probe->Ask(); });
    if (!thread_.joinable()) thread_ = std::jthread([this] { context_.run(); });
  }

  void Drop(const std::string& file) override {
    std::lock_guard lock(mutex_);
    const auto found = probes_.find(file);
    if (found == probes_.end()) return;
    found->second->Drop();
    probes_.erase(found);
  }

 private:
  asio::io_context context_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_ =
      asio::make_work_guard(context_);
  std::mutex mutex_;
  using ProbePtr = std::shared_ptr<Probe>;  // shared with its pending operations
  std::map<std::string, ProbePtr> probes_;  // guarded by mutex_
  std::jthread thread_;                     // last: joined before the rest goes
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

std::string OtherNames(const Exposition& page) {
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
  return AddComment(absl::StrCat("# answered, with other names: ", OtherNames(exposition)));
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
  const std::string key =
      nlohmann::json(metric).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return absl::StrCat("{", step, "\"timestamp\": ", FormatNumber(seconds), ", \"metrics\": {", key,
                      ": ", FormatNumber(observation.value), "}}\n");
}

}  // namespace shirabe::metrics
