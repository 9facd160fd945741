// The stores of an administrator, by users of one namespace: names of others' stores, prefixes that
// lead elsewhere, and what a program puts into the place of a checkpoint. Nothing of a store's
// entry is told, and nothing lies outside the namespace's own part of it.
#include <sys/stat.h>

#include "absl/strings/escaping.h"
#include "absl/time/clock.h"
#include "tests/artifacts/s3_server.h"
#include "tests/attack/attacked_cluster.h"
#include "tests/attack/attacked_server.h"
#include "tests/support/eventually.h"

namespace shirabe::attack {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

class ArtifactsAttackTest : public AttackTest {
 protected:
  void ServeWithStores() {
    for (const char* folder : {"of-red", "of-blue"}) fs::create_directory(cli_.Path(folder));
    Serve({"--stores", cli_.Write("stores.yaml",
                                  absl::StrCat("stores:\n- {name: reds, type: directory, root: ",
                                               cli_.Path("of-red"),
                                               ", namespaces: [red]}\n- {name: blues, type: "
                                               "directory, root: ",
                                               cli_.Path("of-blue"), ", namespaces: [blue]}\n"))});
  }
  static std::string SpecWith(const std::string& name, const std::string& artifacts,
                              const std::string& script = "echo loss=$1") {
    SmallSpec spec{.name = name, .ns = "red"};
    spec.parallel = spec.trials = 1;
    spec.container = ShellCommand(script);
    spec.more = "shirabe: {artifacts: " + artifacts + "}";
    return Yaml(spec);
  }
  service::WireReply Apply(const std::string& spec) const {
    return Http("POST /api/v1/namespaces/red/experiments", kAdminToken, spec);
  }
};

// attacks: CRD spec.shirabe.artifacts.store
TEST_F(ArtifactsAttackTest, AStoreOfAnotherNamespaceIsAsGoodAsNone) {
  ServeWithStores();
  const std::string theirs = Apply(SpecWith("one", "{store: blues, checkpoints: true}")).body;
  const std::string none = Apply(SpecWith("one", "{store: white, checkpoints: true}")).body;
  EXPECT_THAT(theirs, AllOf(HasSubstr("spec.shirabe.artifacts.store"), HasSubstr("blues"),
                            Not(HasSubstr(cli_.Path("")))));
  EXPECT_EQ(absl::StrReplaceAll(none, {{"white", "blues"}}), theirs);
  for (const char* store : {"../reds", "reds/../blues", "REDS", "a b", "\"\"", "\"reds\\n\"",
                            "\"\\u0000\"", "[reds]", "7"}) {
    const auto reply =
        Apply(SpecWith("one", absl::StrCat("{store: ", store, ", checkpoints: true}")));
    EXPECT_GE(reply.status, 400) << store;
    EXPECT_LT(reply.status, 500) << store;
  }
  ExpectAlive();
}

// attacks: CRD spec.shirabe.artifacts.prefix
TEST_F(ArtifactsAttackTest, APrefixLeadsNowhereElse) {
  ServeWithStores();
  for (const std::string& prefix :
       {std::string("../blue"), std::string("/etc"), std::string("a/../../blue"),
        std::string("a//b"), std::string("a/"), std::string("_/other"), std::string("a/_/other"),
        std::string(".hidden"), std::string("a/.b"), std::string("x.partial"),
        std::string("a%2e%2e"), std::string("a\\\\b"), std::string(201, 'a')}) {
    const auto reply = Apply(SpecWith(
        "one", absl::StrCat("{store: reds, checkpoints: true, prefix: \"", prefix, "\"}")));
    EXPECT_GE(reply.status, 400) << prefix;
    EXPECT_LT(reply.status, 500) << prefix;
    EXPECT_THAT(reply.body, HasSubstr("spec.shirabe.artifacts.prefix")) << prefix;
  }
  EXPECT_TRUE(fs::is_empty(cli_.Path("of-red")));
  ExpectAlive();
}

std::string CodeSpec(const std::string& code) {
  SmallSpec spec{.name = "one", .ns = "red"};
  spec.parallel = spec.trials = 1;
  spec.container = ShellCommand("echo loss=$1");
  spec.more = "shirabe: {code: " + code + "}";
  return Yaml(spec);
}

const std::string& SomePackage() {
  static const std::string package = "\"sha256:" + std::string(64, 'a') + "\"";
  return package;
}

// attacks: CRD spec.shirabe.code.store
TEST_F(ArtifactsAttackTest, CodeOfAnotherNamespacesStoreIsAsGoodAsNone) {
  ServeWithStores();
  const auto code = [](const std::string& store) {
    return "{store: " + store + ", package: " + SomePackage() + "}";
  };
  const std::string theirs = Apply(CodeSpec(code("blues"))).body;
  const std::string none = Apply(CodeSpec(code("white"))).body;
  EXPECT_THAT(theirs, AllOf(HasSubstr("spec.shirabe.code.store"), HasSubstr("blues"),
                            Not(HasSubstr(cli_.Path("")))));
  EXPECT_EQ(absl::StrReplaceAll(none, {{"white", "blues"}}), theirs);
  for (const char* store : {"../reds", "REDS", "a b", "\"\"", "\"reds\\n\"", "[reds]", "7"}) {
    const auto reply = Apply(CodeSpec(code(store)));
    EXPECT_GE(reply.status, 400) << store;
    EXPECT_LT(reply.status, 500) << store;
  }
  ExpectAlive();
}

// attacks: CRD spec.shirabe.code.prefix
// attacks: CRD spec.shirabe.code.package
TEST_F(ArtifactsAttackTest, APackageLeadsNowhereElse) {
  ServeWithStores();
  const auto refused = [&](const std::string& more, const std::string& field) {
    const auto reply = Apply(CodeSpec("{store: reds, " + more + "}"));
    EXPECT_GE(reply.status, 400) << more;
    EXPECT_LT(reply.status, 500) << more;
    EXPECT_THAT(reply.body, HasSubstr(field)) << more;
  };
  for (const std::string& prefix :
       {std::string("../blue"), std::string("/etc"), std::string("a/../../blue"),
        std::string("_/one"), std::string(".hidden"), std::string("x.partial"),
        std::string(201, 'a')}) {
    refused("package: " + SomePackage() + ", prefix: \"" + prefix + "\"",
            "spec.shirabe.code.prefix");
  }
  for (const std::string& package :
       {std::string("\"\""), std::string("latest"), std::string("\"sha256:../../blue\""),
        std::string("\"sha256:" + std::string(64, 'A') + "\""),
        std::string("\"sha256:" + std::string(63, 'a') + "\\n\""),
        std::string("\"sha256:" + std::string(100'000, 'a') + "\"")}) {
    refused("package: " + package, "spec.shirabe.code.package");
  }
  EXPECT_TRUE(fs::is_empty(cli_.Path("of-red")));
  ExpectAlive();
}

// What a program leaves as a checkpoint may lead to files of the server.
TEST_F(ArtifactsAttackTest, ACheckpointOfLinksCopiesNothingOfTheServer) {
  ServeWithStores();
  cli_.Write("secret", "a secret of the server");
  const std::string script = absl::StrCat(
      "echo loss=$1; cd $SHIRABE_CHECKPOINT_DIR; mkdir 1.tmp 2.tmp; ln -s ", cli_.Path("secret"),
      " 1.tmp/model; mv 1.tmp 1; echo x > 2.tmp/model; mv 2.tmp 2; "
      "ln -s ",
      cli_.Path(""), " 3");
  EXPECT_LT(Apply(SpecWith("links", "{store: reds, checkpoints: true}", script)).status, 300);
  EXPECT_TRUE(Eventually([&] { return HasSucceeded("red", "links"); })) << server_->Err();
  EXPECT_TRUE(fs::exists(cli_.Path("of-red/red/_/links/1/1/2/manifest.json")));
  EXPECT_FALSE(fs::exists(cli_.Path("of-red/red/_/links/1/1/1")));
  EXPECT_FALSE(fs::exists(cli_.Path("of-red/red/_/links/1/1/3")));
  for (const auto& entry : fs::recursive_directory_iterator(cli_.Path("of-red"))) {
    if (!entry.is_regular_file()) continue;
    EXPECT_THAT(*ReadFile(entry.path()), Not(HasSubstr("a secret of the server")));
  }
  EXPECT_TRUE(fs::is_empty(cli_.Path("of-blue")));
  ExpectAlive();
}

// A store's root that another user can write to: links in it lead to nothing.
TEST_F(ArtifactsAttackTest, LinksInAStoreAreNotFollowed) {
  ServeWithStores();
  fs::create_directory_symlink(cli_.Path("of-blue"), cli_.Path("of-red/red"));
  const std::string script =
      "echo loss=$1; cd $SHIRABE_CHECKPOINT_DIR; mkdir 1.tmp; echo x > "
      "1.tmp/model; mv 1.tmp 1";
  EXPECT_LT(Apply(SpecWith("links", "{store: reds, checkpoints: true}", script)).status, 300);
  EXPECT_TRUE(Eventually([&] { return HasSucceeded("red", "links"); })) << server_->Err();
  EXPECT_TRUE(fs::is_empty(cli_.Path("of-blue")));
  const std::string events =
      Http("GET /api/v1/namespaces/red/experiments/links/events", kRedToken).body;
  EXPECT_THAT(events, HasSubstr("CheckpointsNotCopied"));
  ExpectAlive();
}

// Neither a user, nor the database, a log or a trial's environment is ever told a secret.
TEST_F(ArtifactsAttackTest, CredentialsAreToldNowhere) {
  if (!artifacts::S3Server::IsInstalled()) GTEST_SKIP() << artifacts::S3Server::kMissing;
  const artifacts::S3Server store;
  const std::string secret = "0f5e-the-secret-of-the-store";
  // A wrong one: each error is a chance to tell it.
  Serve({"--stores",
         cli_.Write(
             "stores.yaml",
             absl::StrCat("stores: [{name: reds, type: s3, namespaces: [red], bucket: bucket, "
                          "endpoint: \"",
                          store.endpoint(),
                          "\", credentials: {file: ", store.CredentialFile(secret), "}}]\n"))});
  const std::string script =
      absl::StrCat("echo loss=$1; env > ", cli_.Path("environment"),
                   "; cat /proc/$PPID/environ /proc/$PPID/cmdline > ", cli_.Path("parent"),
                   "; cd $SHIRABE_CHECKPOINT_DIR; mkdir 1.tmp; echo x > 1.tmp/model; mv 1.tmp 1");
  EXPECT_LT(Apply(SpecWith("tell", "{store: reds, checkpoints: true}", script)).status, 300);
  EXPECT_TRUE(Eventually([&] { return HasSucceeded("red", "tell"); })) << server_->Err();
  const std::string events =
      Http("GET /api/v1/namespaces/red/experiments/tell/events", kRedToken).body;
  EXPECT_THAT(events, AllOf(HasSubstr("CheckpointsNotCopied"), HasSubstr("403")));
  std::string told = events + server_->Out() + server_->Err();
  absl::StrAppend(&told, *ReadFile(absl::StrCat("/proc/", server_->pid(), "/cmdline")));
  for (const auto& entry : fs::recursive_directory_iterator(cli_.Path(""))) {
    if (entry.is_regular_file()) told += ReadFile(entry.path()).value_or("");
  }
  EXPECT_THAT(told, Not(HasSubstr(secret)));
  EXPECT_THAT(told, Not(HasSubstr("Signature=")));
}

// What is wrong in the administrator's file is told at start, without what is secret in it.
TEST_F(ArtifactsAttackTest, AFileOfStoresThatIsWrongStartsNothing) {
  const std::string open = cli_.Write("open", "key\nsecret-in-a-file\n");
  fs::permissions(open, fs::perms::owner_read | fs::perms::others_read);
  const std::string three = cli_.Write("three", "key\nsecret-in-a-file\nmore\n");
  fs::permissions(three, fs::perms::owner_read);
  const auto bucket = [](const std::string& more) {
    return absl::StrCat("{name: a, type: s3, namespaces: ['*'], bucket: bucket, ", more, "}");
  };
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"{name: a, type: ftp, namespaces: ['*']}", "directory, gcs, s3"},
      {"{name: a, type: directory, root: etc, namespaces: ['*']}", "absolute path"},
      {"{name: a, type: directory, root: /no/such, namespaces: ['*']}", "No such file"},
      {"{name: a, type: directory, root: /tmp}", "namespaces"},
      {bucket("endpoint: 'http://user:secret-in-a-file@h'"), "a user name or a password"},
      {bucket("endpoint: 'file:///etc'"), "endpoint"},
      {bucket("endpoint: 'http://h/path', credentials: {environment: X}"), "has a path"},
      {bucket("endpoint: 'http://h'"), "credentials"},
      {bucket("endpoint: 'http://h', credentials: {file: " + open + "}"), "chmod o-r"},
      {bucket("endpoint: 'http://h', credentials: {file: " + three + "}"), "two lines"},
      {bucket("endpoint: 'http://h', credentials: {environment: NO_SUCH}"), "NO_SUCH_ACCESS_KEY"},
      {bucket("endpoint: 'http://h', secretKey: secret-in-a-file"), "secretKey"}};
  for (const auto& [entry, reason] : wrong) {
    const std::string file = cli_.Write("stores.yaml", "stores: [" + entry + "]\n");
    const cmd::Outcome outcome = cli_.Run({"serve", "--insecure", "--stores", file, "--grpc",
                                           "127.0.0.1:0", "--http", "127.0.0.1:0"});
    EXPECT_NE(outcome.code, 0) << entry;
    EXPECT_THAT(outcome.err, HasSubstr(reason)) << entry;
    EXPECT_THAT(outcome.err, Not(HasSubstr("secret-in-a-file"))) << entry;
    EXPECT_THAT(outcome.err, AnyOf(HasSubstr("stores.yaml"), HasSubstr("store \"a\""))) << entry;
  }
}

class ArtifactsInClusterTest : public ControllerAttackTest {
 protected:
  // One that pods could be given URLs of, and one that they could not.
  std::string Stores() {
    const std::string credentials = cli_.Write("credentials", "access\nsecret-in-a-file\n");
    EXPECT_EQ(chmod(credentials.c_str(), 0600), 0);
    return cli_.Write(
        "stores.yaml",
        absl::StrCat("stores:\n- {name: bucket, type: s3, endpoint: 'http://127.0.0.1:1', bucket: "
                     "bucket, namespaces: [red], credentials: {file: ",
                     credentials, "}}\n- {name: disk, type: directory, root: ", cli_.state(),
                     ", namespaces: [red]}\n"));
  }
};

// Whoever reaches the door of the pods, and knows the names of all attempts: no URL of a store.
// attacks: gRPC shirabe.v1.Pods/Grant
TEST_F(ArtifactsInClusterTest, WhoIsNoPodGetsNoUrl) {
  StartController({"--stores", Stores()});
  Json experiment = Honest("red", "victim");
  experiment["spec"]["shirabe"]["artifacts"] = {
      {"store", "bucket"}, {"checkpoints", true}, {"outputs", true}};
  experiment["spec"]["shirabe"]["code"] = {{"store", "bucket"},
                                           {"package", "sha256:" + std::string(64, 'a')}};
  Apply(experiment);
  ASSERT_TRUE(Eventually([&] { return JobsOf("victim").size() == 2; }));
  const std::string job = JobsOf("victim")[0].dump();
  EXPECT_THAT(job, AllOf(Not(HasSubstr("secret-in-a-file")), Not(HasSubstr("127.0.0.1:1/")),
                         Not(HasSubstr("X-Amz"))));
  const auto stub = Pods();
  const std::string claims = R"({"kubernetes.io": {"pod": {"uid": "uid-101"}}})";
  for (const std::string& name : {std::string("victim"), std::string("../../red/victim"),
                                  std::string("a\0b", 3), std::string(5000, 'x')}) {
    for (const std::string& token :
         {std::string(), std::string("x"), std::string("a.b.c"), std::string(30'000, 'a'),
          "e30." + absl::WebSafeBase64Escape(claims) + ".forged"}) {
      for (int action = -1; action < 12; ++action) {
        grpc::ClientContext context;
        context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(20)));
        if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
        v1::GrantRequest request;
        request.set_namespace_("red");
        request.set_experiment(name);
        request.set_trial(1);
        request.set_attempt(1);
        request.set_action(static_cast<v1::StoreAction>(action));
        request.mutable_copy()->set_trial(1);
        request.mutable_copy()->set_attempt(1);
        request.mutable_copy()->set_sha256("../../secret");
        if (action % 2 == 0) request.set_code(true);
        v1::GrantReply reply;
        const grpc::Status status = stub->Grant(&context, request, &reply);
        EXPECT_FALSE(status.ok()) << name.substr(0, 20) << " " << token.substr(0, 40);
        EXPECT_EQ(reply.url(), "");
        EXPECT_NE(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
      }
    }
  }
  ExpectAlive();
}

// attacks: CRD spec.shirabe.artifacts.store
TEST_F(ArtifactsInClusterTest, AStoreThatPodsCannotReachIsRefused) {
  StartController({"--stores", Stores()});
  for (const char* field : {"artifacts", "code"}) {
    Json experiment = Honest("red", field);
    experiment["spec"]["shirabe"][field] = {{"store", "disk"}};
    if (std::string(field) == "code") {
      experiment["spec"]["shirabe"]["code"]["package"] = "sha256:" + std::string(64, 'a');
    }
    Apply(experiment);
    EXPECT_THAT(AwaitCondition("red", field),
                AllOf(HasSubstr("InvalidSpec: "), HasSubstr(absl::StrCat("spec.shirabe.", field)),
                      HasSubstr("s3 or gcs"), Not(HasSubstr(cli_.state()))));
    EXPECT_TRUE(JobsOf(field).empty());
  }
}

// attacks: CRD spec.shirabe.artifacts.store
TEST_F(ArtifactsInClusterTest, PodsGetNoStoreThatIsNotTheirs) {
  StartController();
  Json experiment = Honest("red", "copied");
  experiment["spec"]["shirabe"]["artifacts"] = {{"store", "reds"}, {"checkpoints", true}};
  Apply(experiment);
  EXPECT_THAT(AwaitCondition("red", "copied"),
              AllOf(HasSubstr("InvalidSpec: "), HasSubstr("spec.shirabe.artifacts")));
  EXPECT_TRUE(JobsOf("copied").empty());
  experiment = Honest("red", "packed");
  experiment["spec"]["shirabe"]["code"] = {{"store", "reds"},
                                           {"package", "sha256:" + std::string(64, 'a')}};
  Apply(experiment);
  EXPECT_THAT(AwaitCondition("red", "packed"),
              AllOf(HasSubstr("InvalidSpec: "), HasSubstr("spec.shirabe.code")));
  EXPECT_TRUE(JobsOf("packed").empty());
  ExpectAlive();
}

}  // namespace
}  // namespace shirabe::attack
