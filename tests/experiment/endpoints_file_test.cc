// The file of --notifications, as far as its text goes; what its entries name: tests/notify.
#include "experiment/spec/server_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/experiment/specs.h"

namespace shirabe::experiment {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> EndpointFindings(const std::string& text) {
  return Lines(ParseEndpoints(text).findings);
}

TEST(EndpointsFileTest, ReadsEntriesWithDefaults) {
  const auto parsed = ParseEndpoints(R"(endpoints:
  - name: team
    url: https://hooks.example.org/a
    secretFile: /etc/shirabe/team
    namespaces: [red, blue]
  - name: slack
    urlFile: /etc/slack
    format: slack
    namespaces: ["*"]
    allowPrivateAddresses: true
)");
  EXPECT_THAT(Lines(parsed.findings), ElementsAre());
  ASSERT_EQ(parsed.endpoints.endpoints_size(), 2);
  EXPECT_EQ(parsed.endpoints.endpoints(0).format(), v1::WEBHOOK_JSON);
  EXPECT_FALSE(parsed.endpoints.endpoints(0).allow_private_addresses());
  EXPECT_EQ(parsed.endpoints.endpoints(1).format(), v1::WEBHOOK_SLACK);
  EXPECT_TRUE(parsed.endpoints.endpoints(1).allow_private_addresses());
}

TEST(EndpointsFileTest, SaysAllThatIsWrong) {
  const auto findings = EndpointFindings(R"(endpoints:
  - {name: Team, url: https://a.example, urlFile: /b, secretFile: /s, namespaces: [red]}
  - {name: x, secretFile: /s, namespaces: [RED]}
  - {name: x, url: https://a.example, namespaces: [red]}
  - {name: y, url: https://a.example, secretFile: /s, format: xml}
  - {name: z, url: https://a.example, secretFile: /s, namespaces: ["*"], header: a}
)");
  std::string all;
  for (const std::string& line : findings) all += line + "\n";
  for (const char* part :
       {"endpoints[0].name: endpoint name \"Team\" must be", "endpoints[0].url: give one of url",
        "endpoints[1].url: give one of url", "endpoints[1].namespaces[0]: namespace \"RED\"",
        "endpoints[2].secretFile: is required for format json",
        "endpoints[2].name: \"x\" is the name of another endpoint", "endpoints[3].format",
        "endpoints[3].namespaces: is required", "endpoints[4].header"}) {
    EXPECT_THAT(all, HasSubstr(part));
  }
}

TEST(EndpointsFileTest, OtherTextsAreRefusedWithAnExample) {
  EXPECT_THAT(EndpointFindings(""), ElementsAre(HasSubstr("the file holds nothing")));
  EXPECT_THAT(EndpointFindings("[1, 2]"), ElementsAre(HasSubstr("must be a mapping such as")));
  EXPECT_THAT(EndpointFindings("endpoints: []\n---\nendpoints: []\n"),
              testing::Contains(HasSubstr("one document")));
  std::string many = "endpoints:\n";
  for (int i = 0; i < 1001; ++i) {
    many +=
        "- {name: e" + std::to_string(i) + ", url: http://a, secretFile: /s, namespaces: [r]}\n";
  }
  EXPECT_THAT(EndpointFindings(many), ElementsAre(HasSubstr("at most 1000")));
}

}  // namespace
}  // namespace shirabe::experiment
