// The description of the interface names each route. That it is OpenAPI, and true of what a server
// answers, is tested in tests/api.
#include "service/http/openapi.h"

#include <gtest/gtest.h>

#include <set>

#include "absl/strings/ascii.h"
#include "service/http/route_table.h"

namespace shirabe::service {
namespace {

using view::Json;

TEST(HttpOpenapiTest, DescribesEveryRouteOnce) {
  Json document = OpenapiDocument();
  std::set<std::string> ids;
  for (const Route& route : Routes()) {
    EXPECT_TRUE(ids.insert(route.id).second) << route.id;
    const std::string method = absl::AsciiStrToLower(route.method);
    const Json& operation = document["paths"][route.path][method];
    EXPECT_EQ(operation["operationId"], route.id);
    EXPECT_FALSE(route.summary.empty()) << route.id;
    EXPECT_FALSE(route.results.empty()) << route.id;
    for (const Parameter& parameter : PathParameters(route.path)) {
      EXPECT_FALSE(parameter.help.empty()) << parameter.name;
    }
  }
  size_t operations = 0;
  for (const auto& [path, methods] : document["paths"].items()) operations += methods.size();
  EXPECT_EQ(operations, Routes().size());
}

}  // namespace
}  // namespace shirabe::service
