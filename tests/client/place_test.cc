#include "client/state_location.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace shirabe::client {
namespace {

using ::testing::HasSubstr;

StatusOr<StateLocation> Find(const StateLocationFlags& flags,
                             std::map<std::string, std::string> variables) {
  return FindStateLocation(flags, [&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  });
}

TEST(PlaceTest, TheHomeIsTheUsersDataDirectory) {
  EXPECT_EQ(Find({}, {{"HOME", "/u"}})->home, "/u/.local/share/shirabe");
  EXPECT_EQ(Find({}, {{"HOME", "/u"}, {"XDG_DATA_HOME", "/d"}})->home, "/d/shirabe");
  EXPECT_EQ(Find({}, {{"HOME", "/u"}, {"XDG_DATA_HOME", ""}})->home, "/u/.local/share/shirabe");
  // The XDG specification has relative paths ignored.
  EXPECT_EQ(Find({}, {{"HOME", "/u"}, {"XDG_DATA_HOME", "d"}})->home, "/u/.local/share/shirabe");
  EXPECT_EQ(Find({}, {{"HOME", "/u"}, {"SHIRABE_HOME", "/s"}})->home, "/s");
}

TEST(PlaceTest, AFlagWinsOverTheEnvironment) {
  const std::map<std::string, std::string> variables = {
      {"SHIRABE_HOME", "/s"}, {"SHIRABE_DB", "memory:"}, {"SHIRABE_NAMESPACE", "team"}};
  const auto place = Find({}, variables);
  EXPECT_EQ(place->db, "memory:");
  EXPECT_EQ(place->ns, "team");
  EXPECT_FALSE(place->db_is_default);
  EXPECT_FALSE(place->ns_is_default);
  const auto flagged = Find({.db = "sqlite:/x", .ns = "other"}, variables);
  EXPECT_EQ(flagged->db, "sqlite:/x");
  EXPECT_EQ(flagged->ns, "other");
}

TEST(PlaceTest, TheRestIsUsual) {
  const auto place = Find({}, {{"SHIRABE_HOME", "/s"}});
  EXPECT_EQ(place->db, "sqlite:/s/shirabe.db");
  EXPECT_EQ(place->ns, "default");
  EXPECT_TRUE(place->db_is_default);
  EXPECT_TRUE(place->ns_is_default);
}

TEST(PlaceTest, TheDatabaseIsShownWithoutAPassword) {
  const auto shown = [](const std::string& db) { return ShownDatabase({.db = db}); };
  EXPECT_EQ(shown("sqlite:/s/a@b.db"), "sqlite:/s/a@b.db");
  EXPECT_EQ(shown("postgres://u:secret@host:5432/db?sslmode=require"),
            "postgres://u@host:5432/db?sslmode=require");
  EXPECT_EQ(shown("postgres://u@host/db"), "postgres://u@host/db");
  EXPECT_EQ(shown("postgres:///db?host=/run/postgresql"), "postgres:///db?host=/run/postgresql");
  for (const char* hidden :
       {"postgres:///db?user=u&password=secret", "postgres://u:se@cret@host/db",
        "postgres:host=h password=secret", "postgres://u:se/cret@host/db"}) {
    EXPECT_THAT(shown(hidden), testing::Not(HasSubstr("secret"))) << hidden;
    EXPECT_THAT(shown(hidden), testing::Not(HasSubstr("cret@"))) << hidden;
  }
}

TEST(PlaceTest, SaysWhatIsMissing) {
  EXPECT_THAT(Message(Find({}, {}).status()), HasSubstr("SHIRABE_HOME"));
  EXPECT_THAT(Message(Find({.ns = "No_Name"}, {{"HOME", "/u"}}).status()), HasSubstr("No_Name"));
}

}  // namespace
}  // namespace shirabe::client
