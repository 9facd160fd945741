// What the table of routes says of paths and parameters holds for each of its rows.
#include "service/http/route_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "service/http/http_message.h"

namespace shirabe::service {
namespace {

using ::testing::HasSubstr;

// The route's own path, with something good for each of its parameters.
HttpTarget TargetOfHttpMatch(const Route& route, const std::string& ns = "a") {
  std::string path;
  for (size_t at = 0; at < route.path.size();) {
    const size_t open = route.path.find('{', at);
    path += route.path.substr(at, open - at);
    if (open == std::string::npos) break;
    const size_t close = route.path.find('}', open);
    const std::string name = route.path.substr(open + 1, close - open - 1);
    path += name == "namespace" ? ns : name == "name" ? "one" : "1";
    at = close + 1;
  }
  const auto target = ParseTarget(path);
  EXPECT_TRUE(target.ok()) << path << ": " << target.status();
  return target.value_or(HttpTarget());
}

Status Take(const Route& route, const HttpTarget& target) {
  Match match{&route, {}};
  std::string allow;
  const auto found = FindRoute(route.method, target, &allow);
  EXPECT_TRUE(found.ok()) << route.id << ": " << found.status();
  if (!found.ok()) return absl::OkStatus();
  EXPECT_EQ(found->route->id, route.id);
  match = *found;
  return BindParameters(target, match);
}

TEST(HttpMatch, HeadIsAnsweredByTheRouteOfGet) {
  for (const Route& route : Routes()) {
    std::string allow;
    const auto found = FindRoute("HEAD", TargetOfHttpMatch(route), &allow);
    if (route.method != "GET") continue;
    ASSERT_TRUE(found.ok()) << route.id << ": " << found.status();
    EXPECT_EQ(found->route->id, route.id);
  }
}

TEST(HttpMatch, ANamespaceThatIsNoneIsRefusedWhereverOneStands) {
  int tried = 0;
  for (const Route& route : Routes()) {
    if (route.path.find("{namespace}") == std::string::npos) continue;
    ++tried;
    EXPECT_TRUE(Take(route, TargetOfHttpMatch(route)).ok()) << route.id;
    for (const char* bad : {"A", "a_b", "-a", "%C3%A4"}) {
      const Status status = Take(route, TargetOfHttpMatch(route, bad));
      EXPECT_TRUE(absl::IsInvalidArgument(status)) << route.id << " with " << bad;
      EXPECT_THAT(Message(status), HasSubstr("namespace")) << route.id;
    }
  }
  EXPECT_GT(tried, 10);
}

TEST(HttpMatch, IntegersStayWithinTheirBounds) {
  int tried = 0;
  for (const Route& route : Routes()) {
    for (const Parameter& parameter : route.parameters) {
      const bool query = parameter.in == Parameter::In::kQuery;
      if (!query || parameter.type != Parameter::Type::kInteger) continue;
      const auto take = [&](const std::string& value) {
        HttpTarget target = TargetOfHttpMatch(route);
        target.query = {{parameter.name, value}};
        return Take(route, target);
      };
      const std::string name = absl::StrCat(route.id, " ", parameter.name);
      EXPECT_TRUE(take(absl::StrCat(parameter.min)).ok()) << name;
      EXPECT_FALSE(take(absl::StrCat(parameter.min - 1)).ok()) << name;
      for (const char* bad : {"", "x", "1.5", "99999999999999999999", "1e3"}) {
        EXPECT_FALSE(take(bad).ok()) << name << "=" << bad;
      }
      if (parameter.max == parameter.min) continue;  // none is given
      ++tried;
      EXPECT_TRUE(take(absl::StrCat(parameter.max)).ok()) << name;
      EXPECT_FALSE(take(absl::StrCat(parameter.max + 1)).ok()) << name;
    }
  }
  EXPECT_GT(tried, 0);
}

}  // namespace
}  // namespace shirabe::service
