#include "service/common/listen.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace shirabe::service {
namespace {

using Seat = ConnectionTable::Seat;
using Standing = ConnectionTable::Standing;

class TestConnection : public Connection {
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
    const Seat seat = table_.Find(address);
    if (seat == Seat::kNone) return nullptr;
    all_.push_back(std::make_unique<TestConnection>(&table_));
    table_.Enter(all_.back().get(), address, seat);
    return all_.back().get();
  }
  ConnectionTable table_{{.all = 4, .address = 3, .reserve = 2, .reserve_address = 1}};
  std::vector<std::unique_ptr<TestConnection>> all_;
};

TEST_F(ConnectionTableTest, WhoIsUnknownGoesFirstTheOldestOfThem) {
  auto* known = Come("a");
  table_.SetStanding(known, Standing::kIdle);
  auto* old = Come("a");
  auto* young = Come("b");
  auto* work = Come("b");
  table_.SetStanding(work, Standing::kAtWork);
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
    table_.SetStanding(all.back(), Standing::kAtWork);
  }
  table_.SetStanding(all[2], Standing::kIdle);
  table_.SetStanding(all[1], Standing::kIdle);
  table_.SetStanding(Come("c"), Standing::kAtWork);
  EXPECT_TRUE(all[2]->closed);
  EXPECT_FALSE(all[1]->closed);
}

TEST_F(ConnectionTableTest, AReserveIsForWhoComesToAFullTable) {
  for (const char* address : {"a", "a", "b", "b"}) {
    table_.SetStanding(Come(address), Standing::kAtWork);
  }
  EXPECT_EQ(table_.Find("c"), Seat::kReserve);
  auto* first = Come("c");
  EXPECT_EQ(table_.Find("c"), Seat::kNone);  // one of each address
  Come("d");
  EXPECT_FALSE(first->closed);
  Come("e");
  EXPECT_TRUE(first->closed);
  EXPECT_EQ(table_.size(), 6U);
}

TEST_F(ConnectionTableTest, OneAddressDoesNotTakeItAll) {
  std::vector<TestConnection*> all;
  for (int i = 0; i < 3; ++i) all.push_back(Come("a"));
  EXPECT_EQ(table_.Find("a"), Seat::kReserve);
  EXPECT_EQ(table_.Find("b"), Seat::kTable);
  all[0]->Close();
  EXPECT_EQ(table_.Find("a"), Seat::kTable);
  table_.Leave(all[0]);  // again: nothing
}

}  // namespace
}  // namespace shirabe::service
