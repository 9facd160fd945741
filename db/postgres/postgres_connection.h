// One session with a PostgreSQL server: libpq's functions with owners, statuses and time-outs. Used
// by db/postgres/*.cc only, so that no other file sees libpq.
//
// Statements are sent without waiting for the answers of those before (pipeline mode), and
// received together: whatever is sent at once costs one round trip. Each text is prepared once a
// connection. After any error but a refusal of our own the connection is no longer usable, and its
// owner makes another: no caller has to know in which state it was left.
//
// A connection belongs to one thread at a time. Nothing here waits for ever: a server that stays
// silent for `response_timeout` counts as lost.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "base/status.h"
#include "db/commit_rules.h"
#include "db/postgres/postgres_address.h"
#include "db/postgres/postgres_params.h"
#include "google/protobuf/message.h"

namespace shirabe::db {

// What PostgreSQL's error codes (SQLSTATE) mean in the words of db/store.h. Pure functions, called
// by db/postgres/*.cc; safe from any thread.

// What the server said; an empty code stands for a connection that broke before it said anything.
struct PostgresError {
  std::string state{};    // five characters, such as 53100
  std::string message{};  // the first line of it
};

// `database` is the address as it may be shown.
Status StatusOf(const PostgresError& error, const std::string& database);

// Whether the same transaction may succeed if it is simply made again: it was in another's way.
bool IsTransient(const PostgresError& error);

// Whether it makes sense to connect again in a moment: the server is gone, starting, stopping, or
// has ended this session. A wrong password stays wrong.
bool IsConnectionLost(const PostgresError& error);

// A connection to a database that was reached before could not be made: an outage, kUnavailable,
// whatever the reason. A database that is gone has no answer to whether a record exists, and a
// password that is refused says nothing of the rights of a caller.
Status AsOutage(const Status& status);

// A connection could not be made: from libpq's message in its verbose form, which is the only
// place where the code is then found.
PostgresError ParseConnectError(const std::string& message);

// The rows that one statement gave, in binary form; columns are counted from 0.
class PostgresResult {
 public:
  using Owner = std::unique_ptr<PGresult, decltype(PostgresLibrary::PQclear)>;
  PostgresResult(const PostgresLibrary* pq, Owner result) : pq_(pq), result_(std::move(result)) {}

  int rows() const { return pq_->PQntuples(result_.get()); }
  bool IsNull(int row, int column) const;
  int64_t Int(int row, int column) const;  // int8, int4, bool; 0 for null
  double Double(int row, int column) const;
  std::string Bytes(int row, int column) const;  // text, bytea
  // The message in a column; kDataLoss, naming it, if it cannot be read, and kUnimplemented if a
  // newer version wrote values into it that this one does not know.
  template <class Record>
  Status Parse(int row, int column, Record* record) const {
    const char* bytes = pq_->PQgetvalue(result_.get(), row, column);
    const int size = pq_->PQgetlength(result_.get(), row, column);
    return record->ParseFromArray(bytes, size) ? CheckRecord(*record) : Unreadable(*record);
  }

 private:
  static Status Unreadable(const google::protobuf::Message& record);

  const PostgresLibrary* pq_;
  Owner result_;
};

struct PostgresOptions {
  PostgresAddress address{};
  bool read_only = false;
  absl::Duration response_timeout = absl::Seconds(60);
};

// A statement of ours, for tests: its plan must find its rows by this index.
struct PostgresStatement {
  std::string name;
  std::string sql;
  std::string index;
};

class PostgresConnection {
 public:
  // Connected, in the settings that the store's statements rely on. `why`, if given, gets the error
  // behind a status that is not OK.
  static StatusOr<std::unique_ptr<PostgresConnection>> Open(const PostgresOptions& options,
                                                            PostgresError* why = nullptr);
  // By Open.
  PostgresConnection(const PostgresLibrary* pq, PGconn* connection, PostgresOptions options)
      : pq_(pq), connection_(connection, pq->PQfinish), options_(std::move(options)) {}

  // Errors come out of Receive.
  void Send(const std::string& sql, const PostgresParams& params = {});
  // The results of all statements sent since the last time, in their order; or the first error.
  StatusOr<std::vector<PostgresResult>> Receive();
  // Send and Receive.
  StatusOr<PostgresResult> Query(const std::string& sql, const PostgresParams& params = {});
  // Any number of statements without parameters, separated by semicolons; rows are dropped.
  Status Execute(const std::string& sql);

  bool usable() const { return !error_; }
  // Whether it broke, or the server ended it: not an answer to what was asked.
  bool lost() const { return error_ && IsConnectionLost(*error_); }
  const std::optional<PostgresError>& error() const { return error_; }
  const PostgresOptions& options() const { return options_; }

  // For LISTEN: waits until the server says something or `wake_fd` is readable, then returns the
  // payloads of the notifications that have come.
  StatusOr<std::vector<std::string>> AwaitNotifications(int wake_fd, absl::Duration timeout);

 private:
  Status Connect();
  Status Begin();
  Status UsePipeline(bool use);
  StatusOr<PostgresResult::Owner> Next();  // null at the end of one statement's results
  Status Fail(PostgresError error);
  Status FailBroken();

  const PostgresLibrary* const pq_;
  const std::unique_ptr<PGconn, decltype(PostgresLibrary::PQfinish)> connection_;
  const PostgresOptions options_;
  std::optional<PostgresError> error_;                     // the first one; nothing works after it
  std::unordered_map<std::string, std::string> prepared_;  // name by text
  std::vector<bool> sent_;  // what Receive waits for; true is a statement, false its preparation
  bool pipeline_ = false;
};

}  // namespace shirabe::db
