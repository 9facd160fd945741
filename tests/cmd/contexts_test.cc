#include "cmd/server_contexts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

namespace shirabe::cmd {
namespace {

using ::testing::HasSubstr;

class ContextsTest : public testing::Test {
 protected:
  ContextsTest() {
    folder_ = testing::TempDir() + "shirabe-contexts-XXXXXX";
    CHECK(mkdtemp(folder_.data()) != nullptr);
    path_ = folder_ + "/config.yaml";
    variables_["SHIRABE_CONFIG"] = path_;
  }
  ~ContextsTest() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& text) { std::ofstream(path_) << text; }
  client::Environment environment() const {
    return [this](const std::string& name) -> std::optional<std::string> {
      const auto found = variables_.find(name);
      return found == variables_.end() ? std::nullopt : std::optional(found->second);
    };
  }
  Access Find(const AccessQuery& query) {
    const auto access = FindAccess(query, environment());
    EXPECT_TRUE(access.ok()) << access.status();
    return access.value_or(Access{});
  }

  std::map<std::string, std::string> variables_;
  std::string folder_;
  std::string path_;
};

constexpr char kTwo[] = R"(current: near
contexts:
- name: far
  server: tls://far.example:1
  tokenFile: far.token
  ca: /etc/ca.pem
  certificate: me.pem
  key: me.key
  namespace: team
- name: near
  server: 127.0.0.1:2
)";

TEST_F(ContextsTest, ReadsWhatItWrites) {
  Write(kTwo);
  const auto contexts = LoadContexts(path_);
  ASSERT_TRUE(contexts.ok()) << contexts.status();
  EXPECT_EQ(contexts->current, "near");
  const auto far = contexts->Get("far");
  ASSERT_TRUE(far.ok());
  EXPECT_EQ(far->access.token_file, folder_ + "/far.token");
  EXPECT_EQ(far->access.ca, "/etc/ca.pem");
  EXPECT_EQ(far->access.ns, "team");
  const std::string other = folder_ + "/new/folder/config.yaml";
  ASSERT_TRUE(SaveContexts(other, *contexts).ok());
  EXPECT_EQ(ContextsText(LoadContexts(other).value()), ContextsText(*contexts));
}

TEST_F(ContextsTest, NoFileIsAnEmptyOne) {
  EXPECT_TRUE(LoadContexts(path_)->all.empty());
  EXPECT_EQ(Find({}).server, "");
}

TEST_F(ContextsTest, MistakesHaveTheirPlace) {
  const std::pair<const char*, const char*> wrong[] = {
      {"contexts:\n- nmae: x\n", "config.yaml:2:3: unknown field \"nmae\"; did you mean \"name\"?"},
      {"contexts:\n- server: x:1\n", "config.yaml:2:3: a context needs a name"},
      {"contexts:\n- {name: a}\n- {name: a}\n", "context \"a\" is there twice"},
      {"contexts:\n- {name: [a]}\n", "name must be text"},
      {"- a\n", "must be a mapping"},
      {"curent: a\n", "did you mean \"current\"?"},
      {"current: [\n", "config.yaml:"},
  };
  for (const auto& [text, message] : wrong) {
    Write(text);
    const Status status = LoadContexts(path_).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(Message(status), HasSubstr(message));
  }
}

TEST_F(ContextsTest, AFlagWinsOverTheEnvironmentOverTheFile) {
  Write(kTwo);
  EXPECT_EQ(Find({}).server, "127.0.0.1:2");
  variables_["SHIRABE_CONTEXT"] = "far";
  EXPECT_EQ(Find({}).server, "tls://far.example:1");
  EXPECT_EQ(Find({}).ns, "team");
  variables_["SHIRABE_SERVER"] = "around:3";
  EXPECT_EQ(Find({}).server, "around:3");
  EXPECT_EQ(Find({.context = "near"}).server, "127.0.0.1:2");
  EXPECT_EQ(Find({.flags = {.server = "flag:4"}, .context = "near"}).server, "flag:4");
  EXPECT_EQ(FindAccess({.context = "nera"}, environment()).status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(ContextsTest, AServerThatWasNamedIsNotGivenTheSecretsOfAnother) {
  Write(kTwo);
  variables_["SHIRABE_CONTEXT"] = "far";
  EXPECT_EQ(Find({.flags = {.server = "other:1"}}).token_file, "");
  variables_["SHIRABE_SERVER"] = "other:1";
  EXPECT_EQ(Find({}).token_file, "");
  EXPECT_EQ(Find({}).certificate, "");
}

TEST_F(ContextsTest, AStoreThatWasNamedIsOfThisMachine) {
  Write(kTwo);
  EXPECT_EQ(Find({.is_placed = true}).server, "");
}

TEST_F(ContextsTest, WithoutAPlaceForTheFileNothingIsMissed) {
  variables_.clear();
  EXPECT_EQ(Find({}).server, "");
  EXPECT_EQ(FindAccess({.context = "a"}, environment()).status().code(),
            absl::StatusCode::kInvalidArgument);
  variables_["HOME"] = "/home/ada";
  EXPECT_EQ(ContextsPath(environment()).value(), "/home/ada/.config/shirabe/config.yaml");
  variables_["XDG_CONFIG_HOME"] = "/x";
  EXPECT_EQ(ContextsPath(environment()).value(), "/x/shirabe/config.yaml");
}

}  // namespace
}  // namespace shirabe::cmd
