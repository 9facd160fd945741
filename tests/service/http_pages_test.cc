// Lists page by page, while what they list comes and goes.
#include <algorithm>
#include <functional>

#include "absl/strings/str_cat.h"
#include "tests/service/http_fixture.h"

namespace shirabe::service {
namespace {

using testing::HasSubstr;
using view::Json;

constexpr char kA[] = "/api/v1/namespaces/a/experiments";

class HttpPagesTest : public testing::Test {
 protected:
  HttpFixture http_;
};

// The names of all items, page by page; between two pages something else happens.
std::vector<std::string> AllNames(HttpFixture& http, const std::string& target,
                                  const std::function<void(int)>& between) {
  std::vector<std::string> names;
  std::string token;
  for (int page = 1; page < 50; ++page) {
    const std::string more = token.empty() ? "" : absl::StrCat("&pageToken=", token);
    const Json body = BodyOf(http.Get(target + more));
    for (const Json& item : body.value("items", Json::array())) {
      names.push_back(item["metadata"]["name"].get<std::string>());
    }
    token = body.value("nextPageToken", "");
    if (token.empty()) break;
    between(page);
  }
  return names;
}

TEST_F(HttpPagesTest, PagesSkipAndRepeatNothingWhenOthersComeAndGo) {
  int round = 0;
  for (const char* sort : {"", "&sort=name", "&sort=age", "&sort=~trials", "&sort=best"}) {
    ++round;  // nobody gives a name back here
    const auto name = [&](int i) { return absl::StrCat("e", i, "-", round); };
    const auto remove = [&](const std::string& one) {
      EXPECT_EQ(http_.Send("DELETE", absl::StrCat(kA, "/", one), "").status, 204) << one;
    };
    const std::string fresh = absl::StrCat("a-new-one-", round);
    for (int i = 1; i <= 6; ++i) http_.Create("a", name(i));
    const auto drop_and_add = [&](int page) {
      if (page != 1) return;
      // The last item of the page that was read, too; and one that would stand before all.
      remove(name(1));
      remove(name(2));
      http_.Create("a", fresh);
    };
    const auto names = AllNames(http_, absl::StrCat(kA, "?pageSize=2", sort), drop_and_add);
    const auto times = [&](int i) { return std::count(names.begin(), names.end(), name(i)); };
    for (int i = 3; i <= 6; ++i) EXPECT_EQ(times(i), 1) << sort << " " << i;
    for (int i = 1; i <= 2; ++i) EXPECT_LE(times(i), 1) << sort << " " << i;
    for (int i = 3; i <= 6; ++i) remove(name(i));
    remove(fresh);
  }
}

TEST_F(HttpPagesTest, APageTokenIsOfOneOrder) {
  for (const char* name : {"one", "two", "three"}) http_.Create("a", name);
  const Json first = BodyOf(http_.Get(absl::StrCat(kA, "?pageSize=1&sort=name")));
  const std::string token = first["nextPageToken"].get<std::string>();
  const auto with = [&](const std::string& more) { return http_.Get(absl::StrCat(kA, more)); };
  EXPECT_EQ(with("?pageSize=1&sort=name&pageToken=" + token).status, 200);
  EXPECT_THAT(with("?pageSize=1&sort=~name&pageToken=" + token).body,
              HasSubstr("in another order (sort=name)"));
  const HttpReply old = with("?pageToken=p500");
  EXPECT_EQ(old.status, 400);
  EXPECT_THAT(old.body, HasSubstr("of an older server"));
  for (const char* bad : {"k", "k!!!", "kW10", "kbnVsbA", "q1", "kWyIiLDEsW10sW11d"}) {
    EXPECT_EQ(with(absl::StrCat("?pageToken=", bad)).status, 400) << bad;
  }
}

}  // namespace
}  // namespace shirabe::service
