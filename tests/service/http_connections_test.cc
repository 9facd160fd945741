#include "service/common/connection_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace shirabe::service {
namespace {

using ConnectionSlot = ConnectionTable::ConnectionSlot;
using ConnectionState = ConnectionTable::ConnectionState;

class TestConnection : public TrackedConnection {
 public:
  explicit TestConnection(ConnectionTable* table) : table_(table) {}
  void Close() override {
    closed = true;
    table_->Leave(this);
  }
  bool closed = false;

 private:
  ConnectionTable* table_;
};

class ConnectionTableTest : public testing::Test {
 protected:
  TestConnection* Come(const std::string& address) {
    const ConnectionSlot slot = table_.Find(address);
    if (slot == ConnectionSlot::kNone) return nullptr;
    all_.push_back(std::make_unique<TestConnection>(&table_));
    table_.Enter(all_.back().get(), address, slot);
    return all_.back().get();
  }
  ConnectionTable table_{{.all = 4, .address = 3, .reserve = 2, .reserve_address = 1}};
  std::vector<std::unique_ptr<TestConnection>> all_;
};

TEST(ConnectionShares, TakeNoMoreFilesThanThereAre) {
  for (const bool in_cluster : {false, true}) {
    for (const size_t listeners : {1, 2}) {
      const auto [http, grpc] = ShareConnections(16'000, in_cluster, listeners);
      EXPECT_LE(http + 2 * grpc * listeners, 16'000u);
      EXPECT_GT(http + 2 * grpc * listeners, 15'900u);
      EXPECT_EQ(grpc > http, in_cluster && listeners == 1)
          << "the sidecars of all trials come by it";
    }
  }
}

TEST_F(ConnectionTableTest, WhoIsUnknownGoesFirstTheOldestOfThem) {
  auto* known = Come("a");
  table_.SetConnectionState(known, ConnectionState::kIdle);
  auto* old = Come("a");
  auto* young = Come("b");
  auto* work = Come("b");
  table_.SetConnectionState(work, ConnectionState::kAtWork);
  Come("c");
  EXPECT_TRUE(old->closed);
  Come("c");
  EXPECT_TRUE(young->closed);
  EXPECT_FALSE(known->closed);
  EXPECT_EQ(table_.size(), 4U);
}

TEST_F(ConnectionTableTest, ThenWhoIsIdle) {
  std::vector<TestConnection*> all;
  for (const char* address : {"a", "a", "b", "b"}) {
    all.push_back(Come(address));
    table_.SetConnectionState(all.back(), ConnectionState::kAtWork);
  }
  table_.SetConnectionState(all[2], ConnectionState::kIdle);
  table_.SetConnectionState(all[1], ConnectionState::kIdle);
  table_.SetConnectionState(Come("c"), ConnectionState::kAtWork);
  EXPECT_TRUE(all[2]->closed);
  EXPECT_FALSE(all[1]->closed);
}

TEST_F(ConnectionTableTest, AReserveIsForWhoComesToAFullTable) {
  for (const char* address : {"a", "a", "b", "b"}) {
    table_.SetConnectionState(Come(address), ConnectionState::kAtWork);
  }
  EXPECT_EQ(table_.Find("c"), ConnectionSlot::kReserve);
  auto* first = Come("c");
  EXPECT_EQ(table_.Find("c"), ConnectionSlot::kNone);  // one of each address
  Come("d");
  EXPECT_FALSE(first->closed);
  Come("e");
  EXPECT_TRUE(first->closed);
  EXPECT_EQ(table_.size(), 6U);
}

TEST_F(ConnectionTableTest, OneAddressDoesNotTakeItAll) {
  std::vector<TestConnection*> all;
  for (int i = 0; i < 3; ++i) all.push_back(Come("a"));
  EXPECT_EQ(table_.Find("a"), ConnectionSlot::kReserve);
  EXPECT_EQ(table_.Find("b"), ConnectionSlot::kTable);
  all[0]->Close();
  EXPECT_EQ(table_.Find("a"), ConnectionSlot::kTable);
  table_.Leave(all[0]);  // again: nothing
}

}  // namespace
}  // namespace shirabe::service
