#include "db/postgres/postgres_connection.h"

#include <poll.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cerrno>
#include <limits>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/clock.h"

namespace shirabe::db {
namespace {

// The oldest server whose settings below exist.
constexpr int kMinServerVersion = 140000;

// Every statement of the store finds its rows by key. A plan is made once, perhaps when a table is
// still empty and to read all of it seems best; so that is ruled out here, as are the joins that
// read a whole table, and compiling plans that would then look dear.
//
// A writer that was stopped in the middle (by SIGSTOP, by a lost network) must not keep the others
// out: the server ends its transaction after idle_in_transaction_session_timeout.
constexpr char kSettings[] = R"sql(
SET search_path = shirabe;
SET default_transaction_isolation = 'read committed';
SET enable_seqscan = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET jit = off;
SET plan_cache_mode = force_generic_plan;
SET lock_timeout = '10s';
SET idle_in_transaction_session_timeout = '5s';
SET client_connection_check_interval = '2s';
SELECT set_config('synchronous_commit', 'on', false)
  WHERE current_setting('synchronous_commit') = 'off';
)sql";
// Without rows but with an effect, so it cannot be forgotten: what is durable is said above.
constexpr char kReadOnlySettings[] = "SET default_transaction_read_only = on;";

void IgnoreNotice(void*, const char*) {}

std::string FirstLine(const char* text) {
  const std::string all = text == nullptr ? "" : text;
  return std::string(absl::StripAsciiWhitespace(all.substr(0, all.find('\n'))));
}

int Milliseconds(absl::Duration duration) {
  const int64_t ms = absl::ToInt64Milliseconds(duration) + 1;
  return static_cast<int>(std::clamp<int64_t>(ms, 0, std::numeric_limits<int>::max()));
}

// False once `deadline` (of the monotonic clock) has passed. An interruption by a signal counts as
// something happening: everybody who waits looks again anyway.
bool PollUntil(pollfd* fds, nfds_t count, absl::Duration deadline) {
  const absl::Duration left = deadline - RealClock()->Monotonic();
  const int ready = poll(fds, count, Milliseconds(std::max(left, absl::ZeroDuration())));
  return ready > 0 || (ready < 0 && errno == EINTR);
}

PostgresError ErrorOf(const PostgresLibrary& pq, const PGresult* result) {
  const char* state = pq.PQresultErrorField(result, PG_DIAG_SQLSTATE);
  const char* message = pq.PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
  if (message == nullptr) message = pq.PQresultErrorMessage(result);
  return {.state = state == nullptr ? "" : state, .message = FirstLine(message)};
}

}  // namespace

bool PostgresResult::IsNull(int row, int column) const {
  return pq_->PQgetisnull(result_.get(), row, column) == 1;
}

int64_t PostgresResult::Int(int row, int column) const {
  return ReadPostgresInt(pq_->PQgetvalue(result_.get(), row, column),
                         pq_->PQgetlength(result_.get(), row, column));
}

double PostgresResult::Double(int row, int column) const {
  return std::bit_cast<double>(Int(row, column));
}

std::string PostgresResult::Bytes(int row, int column) const {
  return std::string(pq_->PQgetvalue(result_.get(), row, column),
                     static_cast<size_t>(pq_->PQgetlength(result_.get(), row, column)));
}

Status PostgresResult::Unreadable(const google::protobuf::Message& record) {
  return absl::DataLossError(
      absl::StrCat("the database is damaged: a stored ", record.GetDescriptor()->name(),
                   " cannot be read: restore the schema shirabe from a backup"));
}

StatusOr<std::unique_ptr<PostgresConnection>> PostgresConnection::Open(
    const PostgresOptions& options, PostgresError* why) {
  ASSIGN_OR_RETURN(const PostgresLibrary* pq, LoadPostgresLibrary());
  std::map<std::string, std::string> settings(options.address.options.begin(),
                                              options.address.options.end());
  if (!options.read_only) settings.emplace("target_session_attrs", "read-write");
  std::vector<const char*> keywords, values;
  for (const auto& [keyword, value] : settings) {
    keywords.push_back(keyword.c_str());
    values.push_back(value.c_str());
  }
  keywords.push_back(nullptr);
  values.push_back(nullptr);
  PGconn* raw = pq->PQconnectStartParams(keywords.data(), values.data(), 0);
  if (raw == nullptr) return absl::ResourceExhaustedError("out of memory");
  auto connection = std::make_unique<PostgresConnection>(pq, raw, options);
  Status status = connection->Connect();
  if (status.ok()) status = connection->Begin();
  if (status.ok()) return connection;
  if (why != nullptr && connection->error_) *why = *connection->error_;
  return status;
}

Status PostgresConnection::Connect() {
  // Only the verbose form of a message has the server's code in it.
  pq_->PQsetErrorVerbosity(connection_.get(), PQERRORS_VERBOSE);
  pq_->PQsetNoticeProcessor(connection_.get(), IgnoreNotice, nullptr);
  const absl::Duration deadline = RealClock()->Monotonic() + options_.address.patience;
  PostgresPollingStatusType state = pq_->PQstatus(connection_.get()) == CONNECTION_BAD
                                        ? PGRES_POLLING_FAILED
                                        : PGRES_POLLING_WRITING;
  while (state != PGRES_POLLING_OK) {
    if (state == PGRES_POLLING_FAILED) {
      return Fail(ParseConnectError(pq_->PQerrorMessage(connection_.get())));
    }
    const short events = state == PGRES_POLLING_READING ? POLLIN : POLLOUT;
    pollfd fd{.fd = pq_->PQsocket(connection_.get()), .events = events, .revents = 0};
    if (!PollUntil(&fd, 1, deadline)) {
      return Fail({.message = absl::StrCat("no answer to a connection within ",
                                           absl::FormatDuration(options_.address.patience))});
    }
    state = pq_->PQconnectPoll(connection_.get());
  }
  return absl::OkStatus();
}

Status PostgresConnection::Begin() {
  pq_->PQsetErrorVerbosity(connection_.get(), PQERRORS_DEFAULT);
  const int version = pq_->PQserverVersion(connection_.get());
  if (version < kMinServerVersion) {
    return absl::UnimplementedError(
        absl::StrCat("database ", options_.address.shown, " is served by PostgreSQL ",
                     version / 10000, ", but 14 or newer is needed: upgrade the server"));
  }
  if (pq_->PQsetnonblocking(connection_.get(), 1) != 0) return FailBroken();
  return Execute(absl::StrCat(kSettings, options_.read_only ? kReadOnlySettings : ""));
}

Status PostgresConnection::Fail(PostgresError error) {
  if (!error_) error_ = std::move(error);
  return StatusOf(*error_, options_.address.shown);
}

Status PostgresConnection::FailBroken() {
  return Fail({.message = FirstLine(pq_->PQerrorMessage(connection_.get()))});
}

Status PostgresConnection::UsePipeline(bool use) {
  if (error_) return Fail(*error_);
  if (use == pipeline_) return absl::OkStatus();
  const int done = use ? pq_->PQenterPipelineMode(connection_.get())
                       : pq_->PQexitPipelineMode(connection_.get());
  if (done == 0) return FailBroken();
  pipeline_ = use;
  return absl::OkStatus();
}

void PostgresConnection::Send(const std::string& sql, const PostgresParams& params) {
  if (!UsePipeline(true).ok()) return;
  auto [prepared, fresh] = prepared_.try_emplace(sql, absl::StrCat("s", prepared_.size()));
  const char* name = prepared->second.c_str();
  if (fresh) {
    if (pq_->PQsendPrepare(connection_.get(), name, sql.c_str(), 0, nullptr) == 0) {
      FailBroken().IgnoreError();
      return;
    }
    sent_.push_back(false);
  }
  const std::vector<int> lengths = params.lengths();
  const std::vector<int> formats(lengths.size(), 1);
  if (pq_->PQsendQueryPrepared(connection_.get(), name, params.size(), params.pointers().data(),
                               lengths.data(), formats.data(), 1) == 0) {
    FailBroken().IgnoreError();
    return;
  }
  sent_.push_back(true);
}

StatusOr<PostgresResult::Owner> PostgresConnection::Next() {
  const absl::Duration deadline = RealClock()->Monotonic() + options_.response_timeout;
  for (;;) {
    const int unsent = pq_->PQflush(connection_.get());
    if (unsent < 0) return FailBroken();
    if (pq_->PQisBusy(connection_.get()) == 0) break;
    const short events = unsent == 0 ? POLLIN : POLLIN | POLLOUT;
    pollfd fd{.fd = pq_->PQsocket(connection_.get()), .events = events, .revents = 0};
    if (!PollUntil(&fd, 1, deadline)) {
      return Fail({.message = absl::StrCat("no answer within ",
                                           absl::FormatDuration(options_.response_timeout))});
    }
    if (pq_->PQconsumeInput(connection_.get()) == 0) return FailBroken();
  }
  PostgresResult::Owner result(pq_->PQgetResult(connection_.get()), pq_->PQclear);
  if (result == nullptr) return result;
  switch (pq_->PQresultStatus(result.get())) {
    case PGRES_COMMAND_OK:
    case PGRES_TUPLES_OK:
    case PGRES_PIPELINE_SYNC: return result;
    default: return Fail(ErrorOf(*pq_, result.get()));
  }
}

StatusOr<std::vector<PostgresResult>> PostgresConnection::Receive() {
  if (error_) return Fail(*error_);
  if (pq_->PQpipelineSync(connection_.get()) == 0) return FailBroken();
  std::vector<PostgresResult> results;
  for (const bool statement : std::exchange(sent_, {})) {
    ASSIGN_OR_RETURN(PostgresResult::Owner result, Next());
    if (result == nullptr) return FailBroken();
    ASSIGN_OR_RETURN(const PostgresResult::Owner end, Next());
    if (end != nullptr) return FailBroken();
    if (statement) results.emplace_back(pq_, std::move(result));
  }
  RETURN_IF_ERROR(Next().status());  // of the synchronisation
  return results;
}

StatusOr<PostgresResult> PostgresConnection::Query(const std::string& sql,
                                                   const PostgresParams& params) {
  Send(sql, params);
  ASSIGN_OR_RETURN(std::vector<PostgresResult> results, Receive());
  return std::move(results.back());
}

Status PostgresConnection::Execute(const std::string& sql) {
  RETURN_IF_ERROR(UsePipeline(false));
  if (pq_->PQsendQuery(connection_.get(), sql.c_str()) == 0) return FailBroken();
  for (;;) {
    ASSIGN_OR_RETURN(const PostgresResult::Owner result, Next());
    if (result == nullptr) return absl::OkStatus();
  }
}

StatusOr<std::vector<std::string>> PostgresConnection::AwaitNotifications(int wake_fd,
                                                                          absl::Duration timeout) {
  if (error_) return Fail(*error_);
  pollfd fds[] = {{.fd = pq_->PQsocket(connection_.get()), .events = POLLIN, .revents = 0},
                  {.fd = wake_fd, .events = POLLIN, .revents = 0}};
  PollUntil(fds, 2, RealClock()->Monotonic() + timeout);
  if (pq_->PQconsumeInput(connection_.get()) == 0) return FailBroken();
  std::vector<std::string> payloads;
  for (;;) {
    const std::unique_ptr<PGnotify, decltype(pq_->PQfreemem)> notify(
        pq_->PQnotifies(connection_.get()), pq_->PQfreemem);
    if (notify == nullptr) return payloads;
    payloads.emplace_back(notify->extra);
  }
}

namespace {

bool InClass(const PostgresError& error, const char* two) {
  return error.state.compare(0, 2, two) == 0;
}

bool IsState(const std::string& text) {
  if (text.size() != 5) return false;
  for (const char c : text) {
    if (!std::isdigit(static_cast<unsigned char>(c)) && (c < 'A' || c > 'Z')) return false;
  }
  return true;
}

std::string FirstLine(const std::string& text) {
  return std::string(absl::StripAsciiWhitespace(text.substr(0, text.find('\n'))));
}

// Codes whose meaning is not that of their class; kOk if there is none.
absl::StatusCode SpecialCode(const std::string& state) {
  if (state == "55P03" || state == "53300") return absl::StatusCode::kUnavailable;
  if (state == "3D000") return absl::StatusCode::kNotFound;
  if (state == "42501" || state == "25006") return absl::StatusCode::kPermissionDenied;
  if (state == "3F000" || state == "42P01" || state == "42703") return absl::StatusCode::kDataLoss;
  if (state == "54000") return absl::StatusCode::kInvalidArgument;
  return absl::StatusCode::kOk;
}

absl::StatusCode CodeOf(const PostgresError& error) {
  const absl::StatusCode special = SpecialCode(error.state);
  if (special != absl::StatusCode::kOk) return special;
  if (IsConnectionLost(error) || IsTransient(error)) return absl::StatusCode::kUnavailable;
  if (InClass(error, "53")) return absl::StatusCode::kResourceExhausted;
  if (InClass(error, "28")) return absl::StatusCode::kPermissionDenied;
  if (InClass(error, "22")) return absl::StatusCode::kInvalidArgument;
  if (InClass(error, "XX")) return absl::StatusCode::kDataLoss;
  if (InClass(error, "58")) return absl::StatusCode::kUnavailable;
  return absl::StatusCode::kInternal;
}

const char* FixFor(absl::StatusCode code, const PostgresError& error) {
  const std::string& state = error.state;
  if (state == "53100") return ": its disk is full, free space on the server";
  if (state == "53300") return ": it has no connection left, raise its max_connections";
  if (state == "55P03") return ": another process keeps it locked, try again";
  // The second is libpq's, of a server that no session may write to.
  if (state == "25006" || absl::StrContains(error.message, "session is read-only"))
    return ": it is read-only, name the primary server in the address";
  // Without USAGE of a schema its tables do not exist.
  if (state == "42P01" || state == "3F000")
    return ": its user lacks USAGE of the schema shirabe (GRANT USAGE ON SCHEMA shirabe), or the "
           "tables are damaged, then restore them from a backup";
  if (state == "42501") return ": the user may not, grant CREATE on the database (or the tables)";
  switch (code) {
    case absl::StatusCode::kNotFound: return ": create it with createdb, or name another";
    case absl::StatusCode::kPermissionDenied:
      return ": check the user, ~/.pgpass or PGPASSWORD, and the server's pg_hba.conf";
    case absl::StatusCode::kDataLoss:
      return ": the tables of the schema shirabe are damaged, restore them from a backup";
    case absl::StatusCode::kUnavailable: return ": try again";
    default: return "";
  }
}

}  // namespace

Status StatusOf(const PostgresError& error, const std::string& database) {
  const absl::StatusCode code = CodeOf(error);
  const std::string state = error.state.empty() ? "" : absl::StrCat(" (", error.state, ")");
  return Status(
      code, absl::StrCat("database ", database, ": ", error.message, state, FixFor(code, error)));
}

Status AsOutage(const Status& status) { return absl::UnavailableError(Message(status)); }

bool IsTransient(const PostgresError& error) {
  return error.state == "40001" || error.state == "40P01" || error.state == "57014";
}

bool IsConnectionLost(const PostgresError& error) {
  return error.state.empty() || InClass(error, "08") || absl::StartsWith(error.state, "57P") ||
         error.state == "25P03";
}

// "connection to server … failed: FATAL:  28P01: password authentication failed …\nLOCATION: …",
// with one such piece for each server tried, and the first word in the server's language; what is
// not from a server has no code.
PostgresError ParseConnectError(const std::string& message) {
  PostgresError error{.message = FirstLine(message)};
  if (absl::StrContains(message, "no password supplied")) error.state = "28P01";
  for (size_t at = message.rfind(":  "); at != std::string::npos && at > 0;
       at = message.rfind(":  ", at - 1)) {
    const std::string state = message.substr(at + 3, 5);
    if (!IsState(state) || message.compare(at + 8, 2, ": ") != 0) continue;
    const size_t line = message.rfind('\n', at);
    const size_t first = line == std::string::npos ? 0 : line + 1;
    error.state = state;
    error.message = FirstLine(message.substr(first, at + 3 - first) + message.substr(at + 10));
    break;
  }
  return error;
}

}  // namespace shirabe::db
