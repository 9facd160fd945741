#include "tests/kube/fault_proxy.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/clock.h"

namespace shirabe::kube {
namespace {

constexpr size_t kMaxStory = 300;
constexpr absl::Duration kLate = absl::Milliseconds(400);
constexpr absl::Duration kForEver = absl::Hours(1);
constexpr size_t kWhole = 2000;  // bytes of a watch that come before something happens to it

const char* WordOf(Fault fault) {
  switch (fault) {
    case Fault::kNone: return "";
    case Fault::kBusy: return "429";
    case Fault::kUnavailable: return "503";
    case Fault::kBroken: return "500";
    case Fault::kCut: return "cut";
    case Fault::kDoneBroken: return "done, 500";
    case Fault::kDoneTimeout: return "done, 504";
    case Fault::kDoneCut: return "done, cut";
    case Fault::kSlow: return "done, late";
    case Fault::kGone: return "410";
    case Fault::kStall: return "stalled";
    case Fault::kTorn: return "torn";
    case Fault::kEnds: return "ended";
  }
  return "?";
}

// What may happen to a request of that kind.
std::vector<Fault> Kinds(bool watch, bool list, bool stalls) {
  std::vector<Fault> kinds = {Fault::kBusy, Fault::kUnavailable, Fault::kBroken, Fault::kCut};
  if (watch) {
    kinds.insert(kinds.end(), {Fault::kGone, Fault::kTorn, Fault::kTorn});
    if (stalls) kinds.push_back(Fault::kStall);
    return kinds;
  }
  kinds.insert(kinds.end(),
               {Fault::kDoneBroken, Fault::kDoneTimeout, Fault::kDoneCut, Fault::kSlow});
  if (list) kinds.push_back(Fault::kGone);
  return kinds;
}

// Whether the server does not hear of it.
bool IsRefused(Fault fault) {
  return fault == Fault::kBusy || fault == Fault::kUnavailable || fault == Fault::kBroken ||
         fault == Fault::kCut || fault == Fault::kGone;
}

std::string Expired() {
  return StatusText(410, "Expired", "The provided resource version is too old");
}

std::string ErrorEvent() { return "{\"type\":\"ERROR\",\"object\":" + Expired() + "}\n"; }

}  // namespace

FaultProxy::FaultProxy(const Config& server)
    : server_(*Transport::Create(server, RealClock(), {})),
      began_(RealClock()->Monotonic()),
      door_(std::make_unique<FakeApiServer>([this](FakeExchange& exchange) { Handle(exchange); })) {
}

FaultProxy::~FaultProxy() {
  stop_.request_stop();
  Release();
  door_.reset();
}

// ---- what a test says ---------------------------------------------------------------------------

void FaultProxy::Storm(const StormOptions& options) {
  const std::lock_guard lock(mutex_);
  storm_ = options;
}

void FaultProxy::Calm() {
  const std::lock_guard lock(mutex_);
  storm_.reset();
  injected_.clear();
}

void FaultProxy::Inject(Fault fault, const std::string& what, int times) {
  const std::lock_guard lock(mutex_);
  injected_[what] = {fault, times};
}

void FaultProxy::Hold(const std::string& what, When when, int nth) {
  const std::lock_guard lock(mutex_);
  held_ = {.what = what, .when = when, .left = nth};
}

bool FaultProxy::AwaitHeld(absl::Duration patience) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, absl::ToChronoMilliseconds(patience), [&] { return held_.here; });
}

void FaultProxy::Release() {
  const std::lock_guard lock(mutex_);
  held_.left = 0;
  held_.released = true;
}

std::vector<std::string> FaultProxy::Done(const std::string& what) const {
  const std::lock_guard lock(mutex_);
  const auto found = done_.find(what);
  return found == done_.end() ? std::vector<std::string>() : found->second;
}

int FaultProxy::writes() const {
  const std::lock_guard lock(mutex_);
  return writes_;
}

std::string FaultProxy::Story() const {
  const std::lock_guard lock(mutex_);
  return absl::StrJoin(story_, "\n");
}

// ---- a request ----------------------------------------------------------------------------------

// /api/v1/… or /apis/GROUP/VERSION/…, then [namespaces/NAMESPACE/]RESOURCE[/NAME[/PART]].
FaultProxy::Asked FaultProxy::Parse(const FakeRequest& request) {
  std::vector<std::string> parts = absl::StrSplit(request.path, '/', absl::SkipEmpty());
  const size_t prefix = !parts.empty() && parts[0] == "api" ? 2 : 3;
  parts.erase(parts.begin(), parts.begin() + std::min(prefix, parts.size()));
  if (parts.size() > 2 && parts[0] == "namespaces") parts.erase(parts.begin(), parts.begin() + 2);
  Asked asked;
  asked.watch = request.query.count("watch") > 0;
  asked.list = request.method == "GET" && parts.size() == 1 && !asked.watch;
  asked.write = request.method != "GET";
  const std::string verb = asked.watch ? "WATCH" : asked.list ? "LIST" : request.method;
  asked.what = verb + " " + (parts.empty() ? request.path : parts[0]);
  if (parts.size() > 2) asked.what += "/" + parts[2];
  if (parts.size() > 1) asked.name = parts[1];
  if (request.method == "POST" && asked.name.empty()) {
    asked.name = Text(Json::parse(request.body, nullptr, false), {"metadata", "name"});
  }
  return asked;
}

void FaultProxy::Handle(FakeExchange& exchange) {
  const Asked asked = Parse(exchange.request());
  const Fault fault = Draw(asked);
  if (fault != Fault::kNone) Note(asked, WordOf(fault));
  if (IsRefused(fault)) return Refuse(exchange, asked, fault);
  if (IsHeld(asked, When::kBefore)) {
    Note(asked, "held before it was done");
    if (!Keep(exchange)) return;
  }
  asked.watch ? CarryStream(exchange, asked, fault) : Carry(exchange, asked, fault);
}

Fault FaultProxy::Draw(const Asked& asked) {
  const std::lock_guard lock(mutex_);
  const auto injected = injected_.find(asked.what);
  if (injected != injected_.end() && injected->second.left > 0) {
    --injected->second.left;
    return injected->second.fault;
  }
  if (!storm_) return Fault::kNone;
  const std::string key = asked.what + " " + asked.name;
  Rng rng = Rng(Mix(storm_->seed, Fingerprint(key))).Fork(++drawn_[key]);
  // In a storm no watch lasts.
  if (rng.Uniform() >= storm_->share) return asked.watch ? Fault::kEnds : Fault::kNone;
  const std::vector<Fault> kinds = Kinds(asked.watch, asked.list, storm_->stalls);
  return kinds[rng.Below(kinds.size())];
}

bool FaultProxy::IsHeld(const Asked& asked, When when) {
  const std::lock_guard lock(mutex_);
  if (held_.what != asked.what || held_.when != when || held_.left == 0) return false;
  return --held_.left == 0;
}

bool FaultProxy::Keep(FakeExchange& exchange) {
  {
    const std::lock_guard lock(mutex_);
    held_.here = true;
    changed_.notify_all();
  }
  for (;;) {
    if (!exchange.KeepSilent(absl::Milliseconds(20))) return false;
    const std::lock_guard lock(mutex_);
    if (held_.released) break;
  }
  return exchange.KeepSilent(absl::Milliseconds(5));  // it may have gone just before the release
}

void FaultProxy::Refuse(FakeExchange& exchange, const Asked& asked, Fault fault) {
  switch (fault) {
    case Fault::kBusy:
      return exchange.Reply(429, StatusText(429, "TooManyRequests", "the server is busy"),
                            {{"Retry-After", "1"}});
    case Fault::kUnavailable:
      return exchange.Reply(503, StatusText(503, "ServiceUnavailable", "it is starting"));
    case Fault::kBroken:
      return exchange.Reply(500, StatusText(500, "InternalError", "etcdserver: leader changed"));
    case Fault::kGone:
      if (!asked.watch) return exchange.Reply(410, Expired());
      (void)exchange.Stream(ErrorEvent());
      return exchange.EndStream();
    default: return exchange.Reset();
  }
}

// ---- passing it on ------------------------------------------------------------------------------

void FaultProxy::Carry(FakeExchange& exchange, const Asked& asked, Fault fault) {
  const FakeRequest& in = exchange.request();
  const auto type = in.headers.find("content-type");
  const HttpRequest out{in.method, in.target, type == in.headers.end() ? "" : type->second,
                        in.body};
  std::string body;
  const BodyCallback sink = [&](std::string_view piece) {
    body += piece;
    return true;
  };
  const auto answer = server_->Stream(out, absl::Seconds(30), sink, stop_.get_token());
  if (!answer.ok()) {
    Note(asked, Message(answer.status()));
    return exchange.Reset();
  }
  const bool good = answer->status / 100 == 2;
  if (asked.write || !good) Note(asked, absl::StrCat(answer->status));
  if (asked.write) {
    const std::lock_guard lock(mutex_);
    ++writes_;
    if (good) done_[asked.what].push_back(asked.name);
  }
  if (IsHeld(asked, When::kAfter)) {
    Note(asked, "held after it was done");
    if (!Keep(exchange)) return;
  }
  if (fault == Fault::kSlow) (void)exchange.KeepSilent(kLate);
  if (fault == Fault::kDoneCut) return exchange.Reset();
  if (fault == Fault::kDoneBroken) {
    return exchange.Reply(500, StatusText(500, "InternalError", "the answer is lost"));
  }
  if (fault == Fault::kDoneTimeout) {
    return exchange.Reply(504, StatusText(504, "Timeout", "the answer took too long"));
  }
  FakeExchange::Headers headers;
  const std::string retry_after = answer->Header("retry-after");
  if (!retry_after.empty()) headers.emplace_back("Retry-After", retry_after);
  exchange.Reply(answer->status, answer->status == 200 ? body : answer->body, headers);
}

// A watch is accepted at once, with an empty line, which is no event: the client need not wait for
// the first one to know that it is heard.
void FaultProxy::CarryStream(FakeExchange& exchange, const Asked& asked, Fault fault) {
  size_t sent = 0;
  bool broken = false;
  const BodyCallback sink = [&](std::string_view piece) {
    sent += piece.size();
    const bool whole = fault == Fault::kNone || sent < kWhole;
    broken = !whole && fault != Fault::kEnds;
    if (!broken) return exchange.Stream(std::string(piece)) && (whole || !piece.ends_with('\n'));
    if (fault == Fault::kTorn)
      (void)exchange.Stream(std::string(piece.substr(0, piece.size() / 2)));
    if (fault == Fault::kStall) (void)exchange.KeepSilent(kForEver);
    return false;
  };
  if (!exchange.Stream("\n")) return;
  const auto answer = server_->Stream({exchange.request().method, exchange.request().target},
                                      absl::InfiniteDuration(), sink, stop_.get_token());
  if (broken || !answer.ok()) return exchange.Reset();
  if (answer->status != 200) {
    Note(asked, absl::StrCat(answer->status));
    (void)exchange.Stream("{\"type\":\"ERROR\",\"object\":" + answer->body + "}\n");
  }
  exchange.EndStream();
}

void FaultProxy::Note(const Asked& asked, const std::string& how) {
  const double at = absl::ToDoubleSeconds(RealClock()->Monotonic() - began_);
  const std::lock_guard lock(mutex_);
  story_.push_back(absl::StrFormat("%8.3f %s %s: %s", at, asked.what, asked.name, how));
  if (story_.size() > kMaxStory) story_.pop_front();
}

}  // namespace shirabe::kube
