#include "db/postgres/postgres_writer.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "base/log.h"
#include "db/postgres/postgres_reader.h"

namespace shirabe::db {
namespace {

// So that no write waits behind an endless transaction, and no lock is held for long.
constexpr size_t kMaxGroup = 512;
constexpr size_t kMaxObservations = 50'000;
constexpr Backoff kReconnectBackoff{absl::Milliseconds(10), absl::Milliseconds(500)};
// A write whose COMMIT was lost, and had no effect, is made again; not for ever.
constexpr int kMaxLostCommits = 5;

size_t SizeOf(const PostgresRequest& request) {
  return request.batch == nullptr ? 0 : request.batch->observations.size();
}

// A request that is at fault can spoil the transaction of others, who must not suffer for it. What
// the whole database suffers from is no request's fault.
bool IsBatchError(const Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsInternal(status);
}

}  // namespace

absl::Duration PostgresBackoff(int failures) { return kReconnectBackoff.Delay(failures); }

PostgresWriter::PostgresWriter(PostgresWriterOptions options) : options_(std::move(options)) {
  session_.version = options_.version;
  thread_ = std::thread([this] { Loop(); });
}

PostgresWriter::~PostgresWriter() {
  {
    const MutexLock lock(mutex_);
    stop_ = true;
  }
  queued_.NotifyAll();
  stopped_.NotifyAll();
  thread_.join();
}

void PostgresWriter::Run(PostgresRequest* request) {
  for (int lost = 0; lost < kMaxLostCommits; ++lost) {
    Waiting waiting{.request = request};
    {
      MutexLock lock(mutex_);
      queue_.push_back(&waiting);
      queued_.NotifyOne();
      finished_.Wait(lock, [&] { return waiting.done; });
    }
    if (waiting.session == 0) return;
    const StatusOr<bool> took_effect = ResolveUnknownCommit(waiting);
    if (!took_effect.ok()) {
      request->status = absl::UnavailableError(absl::StrCat(
          Message(took_effect.status()),
          " (the connection broke during COMMIT, and whether the write took effect is not known: "
          "read again)"));
      return;
    }
    if (*took_effect) return;  // with the answer of that time
  }
  request->status = absl::UnavailableError(absl::StrCat(
      "database ", options_.connection.address.shown, ": the connection breaks at every COMMIT"));
}

void PostgresWriter::Loop() {
  for (;;) {
    const Group group = NextGroup();
    if (group.empty()) return;
    Execute(group);
    {
      const MutexLock lock(mutex_);
      for (Waiting* waiting : group) waiting->done = true;
    }
    finished_.NotifyAll();
  }
}

// Empty once the writer is to stop and nothing is left.
PostgresWriter::Group PostgresWriter::NextGroup() {
  MutexLock lock(mutex_);
  queued_.Wait(lock,
               [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stop_ || !queue_.empty(); });
  Group group;
  size_t observations = 0;
  for (Waiting* waiting : queue_) {
    observations += SizeOf(*waiting->request);
    if (!group.empty() && (observations > kMaxObservations || group.size() >= kMaxGroup)) break;
    group.push_back(waiting);
  }
  queue_.erase(queue_.begin(), queue_.begin() + static_cast<int64_t>(group.size()));
  return group;
}

void PostgresWriter::Execute(const Group& group) {
  const absl::Duration deadline = RealClock()->Monotonic() + options_.patience;
  for (int failures = 0;; ++failures) {
    bool again = false;
    const Status status = Try(group, &again);
    if (status.ok()) return;
    if (again && RealClock()->Monotonic() < deadline) {
      Pause(failures);
      continue;
    }
    if (group.size() > 1 && IsBatchError(status)) return ExecuteAlone(group);
    for (Waiting* waiting : group) waiting->request->status = status;
    return;
  }
}

void PostgresWriter::ExecuteAlone(const Group& group) {
  for (Waiting* waiting : group) Execute({waiting});
}

// One attempt. OK also if its effect is in doubt: then that is noted. `*again` if another attempt
// may succeed.
Status PostgresWriter::Try(const Group& group, bool* again) {
  RETURN_IF_ERROR(Connect(again));
  std::vector<PostgresRequest*> requests;
  for (Waiting* waiting : group) requests.push_back(waiting->request);
  const int64_t before = session_.sequence;
  const Status status = WriteTogether(requests, &session_);
  if (status.ok()) return status;
  const PostgresSession broken =
      std::exchange(session_, PostgresSession{.version = options_.version});
  const bool lost = broken.db->lost();
  if (!lost || broken.sequence == before) {
    *again = lost || (broken.db->error() && IsTransient(*broken.db->error()));
    return status;
  }
  Log(LogLevel::kWarning, "the connection broke during COMMIT; checking whether it took effect",
      {{"database", options_.connection.address.shown}, {"error", Message(status)}});
  // Refusals, too: they may have been made because of what another write of this group did.
  for (Waiting* waiting : group) {
    waiting->session = broken.id;
    waiting->sequence = broken.sequence;
  }
  return absl::OkStatus();
}

Status PostgresWriter::Connect(bool* again) {
  if (session_.db != nullptr) return absl::OkStatus();
  PostgresError why;
  auto opened = PostgresConnection::Open(options_.connection, &why);
  if (!opened.ok()) {
    *again = absl::IsUnavailable(opened.status()) && IsConnectionLost(why);
    return AsOutage(opened.status());
  }
  session_.id = RandomSessionId();
  const Status status = ForgetOldWriters(opened->get());
  *again = (*opened)->lost();
  if (status.ok()) session_.db = *std::move(opened);
  return status;
}

void PostgresWriter::Pause(int failures) {
  MutexLock lock(mutex_);
  stopped_.WaitFor(lock, PostgresBackoff(failures),
                   [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stop_; });
}

// On the caller's thread, with a connection of its own.
StatusOr<bool> PostgresWriter::ResolveUnknownCommit(const Waiting& waiting) {
  const absl::Duration deadline = RealClock()->Monotonic() + options_.resolve_timeout;
  for (int failures = 0;; ++failures) {
    PostgresError why;
    auto db = PostgresConnection::Open(options_.connection, &why);
    Status status = db.status();
    if (db.ok()) {
      const auto took_effect = WasCommitted(waiting.session, waiting.sequence, db->get());
      if (took_effect.ok()) return took_effect;
      status = took_effect.status();
    }
    if (RealClock()->Monotonic() >= deadline) return status;
    Pause(failures);
  }
}

namespace {

// How long a Commit of another server can go unnoticed if the network swallows the connection.
constexpr absl::Duration kRefreshInterval = absl::Seconds(5);

}  // namespace

PostgresListener::PostgresListener(PostgresOptions options, ChangeSignal* signal)
    : options_(std::move(options)), signal_(signal), stop_(eventfd(0, EFD_CLOEXEC)) {
  CHECK(stop_.valid());
  thread_ = std::thread([this] { Loop(); });
}

PostgresListener::~PostgresListener() {
  CHECK(eventfd_write(stop_.get(), 1) == 0);
  thread_.join();
}

bool PostgresListener::Stopped(absl::Duration wait) const {
  pollfd fd{.fd = stop_.get(), .events = POLLIN, .revents = 0};
  return poll(&fd, 1, static_cast<int>(absl::ToInt64Milliseconds(wait))) > 0;
}

void PostgresListener::Loop() {
  int failures = 0;  // in a row
  while (!Stopped(failures == 0 ? absl::ZeroDuration() : PostgresBackoff(failures))) {
    bool connected = false;
    const Status status = Listen(&connected);
    if (status.ok()) return;
    failures = connected ? 1 : failures + 1;
    if (failures == 1) {
      Log(LogLevel::kWarning, "the feed of changes is interrupted; connecting again",
          {{"database", options_.address.shown}, {"error", Message(status)}});
    }
  }
}

Status PostgresListener::Listen(bool* connected) {
  ASSIGN_OR_RETURN(const auto db, PostgresConnection::Open(options_));
  RETURN_IF_ERROR(db->Query("LISTEN shirabe").status());
  RETURN_IF_ERROR(RaiseRevision(db.get()));  // what was committed before
  *connected = true;
  while (!Stopped(absl::ZeroDuration())) {
    ASSIGN_OR_RETURN(const auto payloads, db->AwaitNotifications(stop_.get(), kRefreshInterval));
    for (const std::string& payload : payloads) {
      int64_t revision = 0;
      if (absl::SimpleAtoi(payload, &revision)) signal_->Notify(revision);
    }
    if (payloads.empty()) RETURN_IF_ERROR(RaiseRevision(db.get()));
  }
  return absl::OkStatus();
}

Status PostgresListener::RaiseRevision(PostgresConnection* db) {
  ASSIGN_OR_RETURN(const int64_t revision, Revision(db));
  signal_->Notify(revision);
  return absl::OkStatus();
}

}  // namespace shirabe::db
