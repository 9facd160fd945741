#include "db/postgres_writer.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/rng.h"

namespace shirabe::db {
namespace {

// So that nobody waits behind an endless transaction, and no lock is held for long.
constexpr size_t kMaxGroup = 512;
constexpr size_t kMaxObservations = 50'000;
constexpr absl::Duration kFirstPause = absl::Milliseconds(10);
constexpr absl::Duration kLongestPause = absl::Milliseconds(500);
// A write whose COMMIT was lost, and had no effect, is made again; not for ever.
constexpr int kMaxLostCommits = 5;

int64_t RandomId() {
  int64_t id = 0;
  for (const char byte : RandomBytes(8)) id = id << 8 | static_cast<unsigned char>(byte);
  return id;
}

size_t SizeOf(const PostgresRequest& request) {
  return request.batch == nullptr ? 0 : request.batch->observations.size();
}

// A request that is at fault can spoil the transaction of others, who must not suffer for it. What
// the whole database suffers from is no request's fault.
bool MayBeOnesFault(const Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsInternal(status);
}

}  // namespace

absl::Duration PostgresBackoff(int failures) {
  return std::min(kFirstPause * (1 << std::min(failures, 10)), kLongestPause);
}

PostgresWriter::PostgresWriter(PostgresWriterOptions options) : options_(std::move(options)) {
  session_.version = options_.version;
  thread_ = std::thread([this] { Loop(); });
}

PostgresWriter::~PostgresWriter() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  queued_.notify_all();
  stopped_.notify_all();
  thread_.join();
}

void PostgresWriter::Run(PostgresRequest* request) {
  for (int lost = 0; lost < kMaxLostCommits; ++lost) {
    Waiting waiting{.request = request};
    {
      std::unique_lock lock(mutex_);
      queue_.push_back(&waiting);
      queued_.notify_one();
      finished_.wait(lock, [&] { return waiting.done; });
    }
    if (waiting.session == 0) return;
    const StatusOr<bool> took_effect = LearnWhether(waiting);
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
    const Group group = Take();
    if (group.empty()) return;
    Execute(group);
    {
      std::lock_guard lock(mutex_);
      for (Waiting* waiting : group) waiting->done = true;
    }
    finished_.notify_all();
  }
}

// Empty once the writer is to stop and nothing is left.
PostgresWriter::Group PostgresWriter::Take() {
  std::unique_lock lock(mutex_);
  queued_.wait(lock, [this] { return stop_ || !queue_.empty(); });
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
    if (group.size() > 1 && MayBeOnesFault(status)) return ExecuteAlone(group);
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
  Log(LogLevel::kWarning, "the connection broke during COMMIT; looking whether it took effect",
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
    return opened.status();
  }
  session_.id = RandomId();
  const Status status = ForgetOldWriters(opened->get());
  *again = (*opened)->lost();
  if (status.ok()) session_.db = *std::move(opened);
  return status;
}

void PostgresWriter::Pause(int failures) {
  std::unique_lock lock(mutex_);
  stopped_.wait_for(lock, absl::ToChronoMicroseconds(PostgresBackoff(failures)),
                    [this] { return stop_; });
}

// On the caller's thread, with a connection of its own.
StatusOr<bool> PostgresWriter::LearnWhether(const Waiting& waiting) {
  const absl::Duration deadline = RealClock()->Monotonic() + options_.doubt_patience;
  for (int failures = 0;; ++failures) {
    PostgresError why;
    auto db = PostgresConnection::Open(options_.connection, &why);
    Status status = db.status();
    if (db.ok()) {
      const auto took_effect = TookEffect(waiting.session, waiting.sequence, db->get());
      if (took_effect.ok()) return took_effect;
      status = took_effect.status();
    }
    if (RealClock()->Monotonic() >= deadline) return status;
    Pause(failures);
  }
}

}  // namespace shirabe::db
