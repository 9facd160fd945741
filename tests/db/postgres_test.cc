// The parts of the PostgreSQL store that need no server: addresses, errors, binary parameters, and
// what is said where libpq is missing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "db/postgres/postgres_address.h"
#include "db/postgres/postgres_connection.h"
#include "db/postgres/postgres_params.h"
#include "db/store.h"

namespace shirabe::db {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(PostgresLibrary, SaysWhatToInstall) {
  const Status status = LoadPostgresLibraryFrom("libpq.so.none").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(Message(status), HasSubstr("apt-get install libpq5"));
  // One that lacks a function is as good as none.
  EXPECT_EQ(LoadPostgresLibraryFrom("libc.so.6").status().code(), absl::StatusCode::kUnimplemented);
}

class PostgresAddressTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto pq = LoadPostgresLibrary();
    if (!pq.ok()) GTEST_SKIP() << "there is no libpq here (package libpq5)";
    pq_ = *pq;
  }
  StatusOr<PostgresAddress> Parse(const std::string& text) const {
    return ParsePostgresAddress(*pq_, text);
  }
  const PostgresLibrary* pq_ = nullptr;
};

TEST_F(PostgresAddressTest, ShowsEverythingButThePassword) {
  for (const char* text : {"//alice:sesame@db:5433/tune?sslmode=require",
                           "host=db port=5433 user=alice password=sesame dbname=tune"}) {
    const auto address = Parse(text);
    ASSERT_TRUE(address.ok()) << address.status();
    EXPECT_EQ(address->shown, "postgres://alice@db:5433/tune");
    const std::pair<std::string, std::string> password("password", "sesame");
    EXPECT_THAT(address->options, ::testing::Contains(password));
  }
  EXPECT_EQ(Parse("")->shown, "postgres://");
  EXPECT_EQ(Parse("host=/run/pg dbname=x")->shown, "postgres:///run/pg/x");
}

TEST_F(PostgresAddressTest, RefusalsHoldNoPassword) {
  for (const char* text : {"//alice:sesame@db/tune?sslmod=x", "host=db passwd=sesame password",
                           "//alice:sesame@[db/tune", "password=sesame hots=db"}) {
    const Status status = Parse(text).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(Message(status), Not(HasSubstr("sesame")));
    EXPECT_THAT(Message(status), HasSubstr("postgres://USER@HOST:PORT/DATABASE"));
  }
  EXPECT_THAT(Message(Parse("hots=db").status()), HasSubstr("hots"));
  const Status scheme = Open("postgrse://alice:sesame@db/tune").status();
  EXPECT_THAT(Message(scheme), Not(HasSubstr("sesame")));
  EXPECT_THAT(Message(scheme), HasSubstr("postgrse:"));
}

TEST_F(PostgresAddressTest, WhatItSaysGoesBeforeWhatWeWould) {
  const auto address = Parse("host=db connect_timeout=9 application_name=mine");
  EXPECT_EQ(address->patience, absl::Seconds(9));
  const std::pair<std::string, std::string> name("application_name", "mine");
  EXPECT_THAT(address->options, ::testing::Contains(name));
  EXPECT_EQ(Parse("host=db")->patience, absl::Seconds(3));
}

TEST(PostgresError, MeansWhatTheStoreSays) {
  const std::map<std::string, absl::StatusCode> codes = {
      {"", absl::StatusCode::kUnavailable},
      {"57P01", absl::StatusCode::kUnavailable},
      {"57P03", absl::StatusCode::kUnavailable},
      {"08006", absl::StatusCode::kUnavailable},
      {"40001", absl::StatusCode::kUnavailable},
      {"55P03", absl::StatusCode::kUnavailable},
      {"53300", absl::StatusCode::kUnavailable},
      {"53100", absl::StatusCode::kResourceExhausted},
      {"53200", absl::StatusCode::kResourceExhausted},
      {"28P01", absl::StatusCode::kPermissionDenied},
      {"42501", absl::StatusCode::kPermissionDenied},
      {"3D000", absl::StatusCode::kNotFound},
      {"42P01", absl::StatusCode::kDataLoss},
      {"XX001", absl::StatusCode::kDataLoss},
      {"22021", absl::StatusCode::kInvalidArgument},
      {"42601", absl::StatusCode::kInternal},
  };
  for (const auto& [state, code] : codes) {
    const Status status = StatusOf({.state = state, .message = "why"}, "postgres://db/x");
    EXPECT_EQ(status.code(), code) << state;
    EXPECT_THAT(Message(status), HasSubstr("postgres://db/x: why"));
  }
}

TEST(PostgresError, FindsTheCodeOfAFailedConnection) {
  const PostgresError error = ParseConnectError(
      "connection to server at \"db\" (::1), port 5432 failed: Connection refused\n"
      "\tIs the server running on that host and accepting TCP/IP connections?\n"
      "connection to server at \"db\" (127.0.0.1), port 5432 failed: FATAL:  28P01: password "
      "authentication failed for user \"alice\"\nLOCATION:  auth_failed, auth.c:327\n");
  EXPECT_EQ(error.state, "28P01");
  EXPECT_EQ(error.message,
            "connection to server at \"db\" (127.0.0.1), port 5432 failed: FATAL:  password "
            "authentication failed for user \"alice\"");
  const PostgresError refused = ParseConnectError("connection to server failed: No route\n");
  EXPECT_EQ(refused.state, "");
  EXPECT_TRUE(IsConnectionLost(refused));
  EXPECT_EQ(ParseConnectError("fe_sendauth: no password supplied\n").state, "28P01");
  const PostgresError replica =
      ParseConnectError("connection to server at \"db\" failed: session is read-only\n");
  EXPECT_TRUE(absl::IsUnavailable(StatusOf(replica, "x"))) << "it may become the primary";
  EXPECT_NE(Message(StatusOf(replica, "x")).find("name the primary server"), std::string::npos);
  EXPECT_EQ(ParseConnectError("").message, "");
}

TEST(PostgresParams, ReadBackAsTheyWere) {
  for (const int64_t value : {INT64_MIN, int64_t{-2}, int64_t{0}, int64_t{1} << 40, INT64_MAX}) {
    PostgresParams params;
    params.Int(value);
    EXPECT_EQ(ReadPostgresInt(params.pointers()[0], params.lengths()[0]), value);
  }
  PostgresParams params;
  params.Int4(-7).Bool(true).Text(std::string("a\0b", 3)).Null().Limit(-1).Limit(3);
  EXPECT_EQ(params.size(), 6);
  EXPECT_EQ(ReadPostgresInt(params.pointers()[0], params.lengths()[0]), -7);
  EXPECT_EQ(ReadPostgresInt(params.pointers()[1], params.lengths()[1]), 1);
  EXPECT_EQ(params.lengths()[2], 3);
  EXPECT_EQ(params.pointers()[3], nullptr);
  EXPECT_EQ(params.pointers()[4], nullptr);
  EXPECT_NE(params.pointers()[5], nullptr);
}

TEST(PostgresParams, ArraysHaveTheServersForm) {
  PostgresArray array(PostgresArray::Type::kInt4);
  const std::string empty = array.Encode();
  EXPECT_EQ(empty, std::string("\0\0\0\0\0\0\0\0\0\0\0\x17", 12));
  array.Add(-1);
  EXPECT_EQ(array.Encode(), std::string("\0\0\0\1\0\0\0\0\0\0\0\x17\0\0\0\1\0\0\0\1"
                                        "\0\0\0\4\xff\xff\xff\xff",
                                        28));
  array.Clear();
  EXPECT_EQ(array.Encode(), empty);
}

}  // namespace
}  // namespace shirabe::db
