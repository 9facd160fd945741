// Rows by columns: what is copied into a reply, and what keeps it small.
#include "client/charts/column_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"

namespace shirabe::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::NanSensitiveDoubleEq;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// number, a category with two fixed words, a category of any words, a detail.
ColumnTable MakeTable() {
  return ColumnTable({{"number"},
                      {"state", v1::COLUMN_CATEGORY, false, {"new", "done"}},
                      {"node", v1::COLUMN_CATEGORY},
                      {"detail", v1::COLUMN_NUMBER, true}});
}

void PutRow(ColumnTable& table, int64_t trial, int64_t revision, const std::string& node) {
  const double number = static_cast<double>(trial);
  const double word = node.empty() ? kNone : table.IndexOf(2, node);
  table.Put({trial, 0}, revision, std::vector<double>{number, 1, word, number * 10});
}

v1::Columns Must(const StatusOr<v1::Columns>& columns) {
  EXPECT_TRUE(columns.ok()) << columns.status();
  return columns.value_or(v1::Columns());
}

v1::ColumnsRequest Asking(const std::vector<std::string>& fields) {
  v1::ColumnsRequest request;
  request.mutable_fields()->Assign(fields.begin(), fields.end());
  return request;
}

std::vector<double> NumbersOf(const v1::Columns& columns) {
  return {columns.columns(0).values().begin(), columns.columns(0).values().end()};
}

TEST(ColumnTable, KeepsRowsInOrderWhateverComesFirst) {
  ColumnTable table = MakeTable();
  for (const int64_t trial : {5, 1, 9, 3}) PutRow(table, trial, 7, "a");
  PutRow(table, 3, 8, "b");  // again
  const v1::Columns all = Must(table.Read({}));
  EXPECT_THAT(NumbersOf(all), ElementsAre(1, 3, 5, 9));
  EXPECT_EQ(all.rows(), 4);
  EXPECT_EQ(all.total(), 4);
  EXPECT_EQ(all.columns_size(), 3) << "details come only by name";
  EXPECT_EQ(table.newest(), 8);
  EXPECT_THAT(all.columns(2).dictionary(), ElementsAre("a", "b"));
  EXPECT_THAT(all.columns(2).values(), ElementsAre(0, 1, 0, 0));
}

TEST(ColumnTable, GivesTheColumnsThatAreNamedInTheirOrder) {
  ColumnTable table = MakeTable();
  PutRow(table, 1, 7, "");
  const v1::Columns some = Must(table.Read(Asking({"detail", "node", "state"})));
  ASSERT_EQ(some.columns_size(), 3);
  EXPECT_EQ(some.columns(0).name(), "detail");
  EXPECT_THAT(some.columns(0).values(), ElementsAre(10));
  EXPECT_THAT(some.columns(1).values(), ElementsAre(NanSensitiveDoubleEq(kNone)));
  EXPECT_THAT(some.columns(1).dictionary(), IsEmpty());
  EXPECT_THAT(some.columns(2).dictionary(), ElementsAre("new", "done")) << "fixed words stay";
}

TEST(ColumnTable, ListsOnlyWordsThatItsRowsUse) {
  ColumnTable table = MakeTable();
  for (int64_t trial = 1; trial <= 100; ++trial) {
    PutRow(table, trial, trial, absl::StrCat("node-", trial));
  }
  v1::ColumnsRequest request = Asking({"number", "node"});
  request.set_since(98);
  const v1::Columns changed = Must(table.Read(request));
  EXPECT_THAT(NumbersOf(changed), ElementsAre(99, 100));
  EXPECT_THAT(changed.columns(1).dictionary(), ElementsAre("node-99", "node-100"));
  EXPECT_THAT(changed.columns(1).values(), ElementsAre(0, 1));
  EXPECT_EQ(changed.total(), 100);
}

TEST(ColumnTable, PagesFollowEachOtherWithoutGapsUnderEachLimit) {
  ColumnTable table = MakeTable();
  for (int64_t trial = 1; trial <= 50; ++trial) {
    PutRow(table, 2 * trial, trial, absl::StrCat("node \"", trial, "\""));
  }
  for (const auto& [limit, bytes] : {std::pair(7, 0), std::pair(0, 2600), std::pair(0, 1)}) {
    v1::ColumnsRequest request;
    request.set_limit(limit);
    request.set_max_bytes(bytes);
    std::vector<double> seen;
    for (int page = 0; page < 100; ++page) {
      const v1::Columns columns = Must(table.Read(request));
      const std::vector<double> numbers = NumbersOf(columns);
      ASSERT_FALSE(numbers.empty());
      EXPECT_LE(numbers.size(), static_cast<size_t>(limit == 0 ? 50 : limit));
      seen.insert(seen.end(), numbers.begin(), numbers.end());
      if (!columns.has_next()) break;
      *request.mutable_after() = columns.next();
    }
    ASSERT_EQ(seen.size(), 50) << limit << " " << bytes;
    for (int i = 0; i < 50; ++i) EXPECT_EQ(seen[i], 2 * (i + 1));
  }
}

// Long names of nodes must not make a reply larger than its limit.
TEST(ColumnTable, CountsWordsAmongItsBytes) {
  ColumnTable table = MakeTable();
  const std::string long_name(10'000, '"');
  for (int64_t trial = 1; trial <= 1000; ++trial) {
    PutRow(table, trial, 1, absl::StrCat(trial, long_name));
  }
  const v1::Columns first = Must(table.Read({}));
  EXPECT_TRUE(first.has_next());
  EXPECT_GT(first.rows(), 300);
  EXPECT_LT(first.rows() * 20'000, ColumnTable::kMaxBytes + 40'000) << "each quote is two bytes";
}

TEST(ColumnTable, RefusesWhatIsOutOfRangeByName) {
  ColumnTable table = MakeTable();
  PutRow(table, 1, 7, "a");
  const auto complaint = [&](const v1::ColumnsRequest& request) {
    return Message(table.Read(request).status());
  };
  EXPECT_THAT(complaint(Asking({"nmber"})), HasSubstr("did you mean \"number\"?"));
  EXPECT_THAT(complaint(Asking({"<b>"})), HasSubstr("there is no column \"<b>\""));
  EXPECT_THAT(complaint(Asking({""})), HasSubstr("there is no column \"\""));
  EXPECT_THAT(complaint(Asking({"node", "node"})), HasSubstr("twice"));
  v1::ColumnsRequest request;
  request.set_limit(-1);
  EXPECT_THAT(complaint(request), HasSubstr("limit must be from 0"));
  request.set_limit(std::numeric_limits<int64_t>::max());
  EXPECT_EQ(complaint(request), "");
  request.set_max_bytes(ColumnTable::kMaxBytes + 1);
  EXPECT_THAT(complaint(request), HasSubstr("max_bytes"));
  request.clear_max_bytes();
  request.set_since(-5);
  EXPECT_THAT(complaint(request), HasSubstr("since"));
}

TEST(ColumnTable, SaysHowMuchItTakes) {
  ColumnTable table = MakeTable();
  for (int64_t trial = 1; trial <= 10'000; ++trial) PutRow(table, trial, 1, "a");
  const int64_t least = 10'000 * (4 * 8 + 16 + 8);
  EXPECT_GE(table.bytes(), least);
  EXPECT_LE(table.bytes(), 3 * least);
}

}  // namespace
}  // namespace shirabe::client
