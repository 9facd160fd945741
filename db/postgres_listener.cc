#include "db/postgres_listener.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/time/time.h"
#include "base/log.h"
#include "db/postgres_reader.h"
#include "db/postgres_writer.h"

namespace shirabe::db {
namespace {

// How long a Commit of another server can go unnoticed if the network swallows the connection.
constexpr absl::Duration kLookEvery = absl::Seconds(5);

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
  RETURN_IF_ERROR(Look(db.get()));  // what was committed before
  *connected = true;
  while (!Stopped(absl::ZeroDuration())) {
    ASSIGN_OR_RETURN(const auto payloads, db->AwaitNotifications(stop_.get(), kLookEvery));
    for (const std::string& payload : payloads) {
      int64_t revision = 0;
      if (absl::SimpleAtoi(payload, &revision)) signal_->Raise(revision);
    }
    if (payloads.empty()) RETURN_IF_ERROR(Look(db.get()));
  }
  return absl::OkStatus();
}

Status PostgresListener::Look(PostgresConnection* db) {
  ASSIGN_OR_RETURN(const int64_t revision, Revision(db));
  signal_->Raise(revision);
  return absl::OkStatus();
}

}  // namespace shirabe::db
