// Everything that a client can be asked, by everybody who may ask: by the table of rights, an
// administrator, the namespace's own user, that of another, the trial itself, another trial and a
// person whom a cluster judges. What is asked is looked at only where the answer is not known yet.
#include "service/common/guarded_client.h"

#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "client/wire_format.h"
#include "google/protobuf/descriptor.h"
#include "service/common/authorization.h"
#include "tests/service/http_fixture.h"
#include "tests/support/paths.h"

namespace shirabe::service {
namespace {

using client::Client;
using testing::HasSubstr;
using testing::SizeIs;

const ExperimentKey kKey{"a", "secret"};
const TrialKey kTrial{kKey, 1};

struct Asked {
  std::string method;  // of shirabe.v1.Shirabe
  std::function<Status(Client&)> ask;
};

v1::Experiment Parsed(const std::string& ns, const std::string& name) {
  auto parsed = experiment::ParseExperiments(AskedSpec(name));
  parsed[0].experiment.mutable_metadata()->set_namespace_(ns);
  return parsed[0].experiment;
}

Status SendVerb(Client& client, v1::Intent::Verb verb) {
  v1::Intent intent;
  intent.set_verb(verb);
  return client.Send(kKey, intent);
}

v1::FilesRequest FilesOfTrial() {
  v1::FilesRequest request;
  *request.mutable_trial() = client::ToWire(kTrial);
  return request;
}

client::Imported Imports() {
  client::Imported imported{.name = "imported", .source = "a test"};
  imported.objective = {{"type", "minimize"}, {"objectiveMetricName", "loss"}};
  imported.parameters = view::Json::array({client::SpaceFromValues("x", {"0.1", "0.9"})});
  imported.trials.push_back(
      {.name = "1", .values = {{"x", "0.5"}}, .points = {{.metric = "loss", .value = 1}}});
  return imported;
}

// Of the experiment kKey.
template <class Request, class Reply>
Asked ChartMethod(const char* method) {
  return {method, [method](Client& c) {
            Request request;
            request.set_namespace_(kKey.ns);
            request.set_experiment(kKey.name);
            return c.Get<Reply>(method, request).status();
          }};
}

// Of the namespace.
template <class Request, class Reply>
Asked ListMethod(const char* method) {
  return {method, [method](Client& c) {
            Request request;
            request.set_namespace_(kKey.ns);
            return c.List<Reply>(method, request).status();
          }};
}

std::vector<Asked> Everything() {
  return {
      ChartMethod<v1::ColumnsRequest, v1::Columns>("GetTrialColumns"),
      ChartMethod<v1::ColumnsRequest, v1::Columns>("GetAttemptColumns"),
      ChartMethod<v1::CurvesRequest, v1::Curves>("GetCurves"),
      ChartMethod<v1::SummaryRequest, v1::Summary>("GetSummary"),
      ListMethod<v1::ListSummariesRequest, v1::Summary>("ListSummaries"),
      ListMethod<v1::CapacityRequest, v1::CapacityReport>("GetCapacity"),
      {"GetExperiment", [](Client& c) { return c.GetExperiment(kKey).status(); }},
      {"ListExperiments", [](Client& c) { return c.ListExperiments("a").status(); }},
      {"GetTrial", [](Client& c) { return c.GetTrial(kTrial).status(); }},
      {"ListTrials", [](Client& c) { return c.ListTrials({.experiment = kKey}).status(); }},
      {"ListAttempts", [](Client& c) { return c.ListAttempts({.experiment = kKey}).status(); }},
      {"ListCheckpoints", [](Client& c) { return c.ListCheckpoints(kTrial).status(); }},
      {"ListObservations",
       [](Client& c) { return c.ListObservations({.trial = kTrial}).status(); }},
      {"ListEvents", [](Client& c) { return c.ListEvents({.experiment = kKey}).status(); }},
      {"AwaitChange", [](Client& c) { return c.Revision().status(); }},
      {"AwaitChange", [](Client& c) { return c.AwaitChange(0, absl::ZeroDuration()).status(); }},
      {"ListChanges", [](Client& c) { return c.Changes(0).status(); }},
      ListMethod<v1::RightsRequest, v1::CallerRights>("GetRights"),
      {"GetHolder", [](Client& c) { return c.Holder(kKey).status(); }},
      {"ReadLog",
       [](Client& c) {
         return c.ReadLog({kTrial, 1}, 0, 1).status();
       }},
      {"ListFiles",
       [](Client& c) { return c.List<v1::FileInfo>("ListFiles", FilesOfTrial()).status(); }},
      {"ReadFile",
       [](Client& c) {
         v1::ReadFileRequest request;
         *request.mutable_files() = FilesOfTrial();
         request.set_path("model");
         return c.Get<v1::FileChunk>("ReadFile", request).status();
       }},
      {"Suggest", [](Client& c) { return c.Suggest(Parsed("a", "new"), 1).status(); }},
      {"SubmitExperiment", [](Client& c) { return c.Submit(Parsed("a", "secret"), {}).status(); }},
      {"ImportExperiment",
       [](Client& c) {
         return c.Get<v1::ImportReply>("ImportExperiment", client::ToWire("a", Imports())).status();
       }},
      {"SendIntent", [](Client& c) { return SendVerb(c, v1::Intent::PAUSE); }},
      {"Ask", [](Client& c) { return c.Ask(kKey, "caller", absl::Seconds(10)).status(); }},
      {"Tell",
       [](Client& c) {
         return c.Tell({.trial = kTrial, .points = {{.metric = "loss", .value = 1, .step = 2}}})
             .status();
       }},
      {"DeleteExperiment",
       [](Client& c) {
         return c.Delete({"a", "none"}, absl::ZeroDuration(), [](absl::Duration) { return true; });
       }},
  };
}

// Refused by the guard; what comes back from behind it is another's business.
bool IsRefused(const Status& status) {
  return absl::IsPermissionDenied(status) &&
         (absl::StrContains(status.message(), "this token is") ||
          absl::StrContains(status.message(), "judged"));
}

class GuardedClientTest : public testing::Test {
 protected:
  GuardedClientTest() {
    http_.Create("a", "secret");
    const auto asked = http_.client().Ask(kKey, "fixture", absl::Seconds(20));
    CHECK(asked.ok() && asked->has_trial());
    token_ = asked->token();
    http_.Create("b", "mine");
  }
  std::unique_ptr<Client> As(Principal principal, GuardOptions rights = {}) {
    return Guard(http_.client(), std::move(principal), rights);
  }
  static Principal User(const std::string& ns) {
    return {.role = Principal::Role::kUser, .ns = ns, .name = "user of " + ns, .listener = "grpc"};
  }
  static Principal Trial(const std::string& token) {
    return {.role = Principal::Role::kTrial, .token = token};
  }

  HttpFixture http_;
  std::string token_;
};

TEST_F(GuardedClientTest, NothingOfANamespaceIsForTheUserOfAnother) {
  const auto other = As(User("b"));
  for (const Asked& asked : Everything()) {
    const bool general =
        RightsOf("shirabe.v1.Shirabe/" + asked.method).audience() == v1::Rights::CALLERS;
    EXPECT_EQ(IsRefused(asked.ask(*other)), !general) << asked.method << asked.ask(*other);
  }
}

TEST_F(GuardedClientTest, TheUserOfItAndTheAdministratorAreRefusedNothing) {
  for (const Principal& principal : {User("a"), Principal{.role = Principal::Role::kAdmin}}) {
    const auto client = As(principal);
    for (const Asked& asked : Everything()) {
      const Status status = asked.ask(*client);
      EXPECT_FALSE(IsRefused(status)) << asked.method << " " << status;
    }
  }
}

TEST_F(GuardedClientTest, AListOfAllNamespacesIsForTheAdministrator) {
  EXPECT_TRUE(IsRefused(As(User("a"))->ListExperiments("").status()));
  EXPECT_THAT(*As({.role = Principal::Role::kAdmin})->ListExperiments(""), SizeIs(2));
}

TEST_F(GuardedClientTest, ATrialMayReadAndReportWhatIsItsOwnAndNothingElse) {
  const auto own = As(Trial(token_));
  const auto unknown = As(Trial(std::string(16, 'x')));
  const auto none = As(Trial(""));
  for (const Asked& asked : Everything()) {
    const bool open =
        RightsOf("shirabe.v1.Shirabe/" + asked.method).audience() == v1::Rights::TRIALS;
    EXPECT_EQ(IsRefused(asked.ask(*own)), !open) << asked.method << " " << asked.ask(*own);
    EXPECT_TRUE(IsRefused(asked.ask(*unknown))) << asked.method;
    EXPECT_TRUE(IsRefused(asked.ask(*none))) << asked.method;
  }
  // Nor another trial of the same experiment.
  EXPECT_TRUE(IsRefused(own->GetTrial({kKey, 2}).status()));
  EXPECT_TRUE(IsRefused(own->ListObservations({.trial = {kKey, 2}}).status()));
  EXPECT_TRUE(IsRefused(own->ListCheckpoints({kKey, 2}).status()));
}

// An attempt that was lost may still report; what it says of "the attempt that runs" is not taken
// for another's.
TEST_F(GuardedClientTest, WhatATrialReportsIsFencedByItsToken) {
  auto parsed = experiment::ParseExperiments(absl::StrReplaceAll(
      AskedSpec("again"), {{"seed: 3", "seed: 3, attempts: {maxFailures: 1}"}}));
  parsed[0].experiment.mutable_metadata()->set_namespace_("a");
  ASSERT_TRUE(http_.client().Submit(parsed[0].experiment, {}).ok());
  const ExperimentKey key{"a", "again"};
  const auto first = http_.client().Ask(key, "caller", absl::Seconds(20));
  ASSERT_TRUE(first.ok() && first->has_trial());
  experiment::Report report{
      .trial = {key, 1}, .attempt = 1, .end = experiment::Report::End::kFailed};
  ASSERT_TRUE(As(Trial(first->token()))->Tell(report).ok());
  const auto second = http_.client().Ask(key, "caller", absl::Seconds(60));
  ASSERT_TRUE(second.ok() && second->has_trial()) << second.status();
  ASSERT_EQ(second->attempt(), 2);
  report = {.trial = {key, 1}};
  report.points.push_back({.metric = "loss", .value = 1, .step = 1});
  EXPECT_TRUE(absl::IsPermissionDenied(As(Trial(first->token()))->Tell(report).status()));
  EXPECT_TRUE(As(Trial(second->token()))->Tell(report).ok());
}

TEST_F(GuardedClientTest, ChangesAreThoseOfTheCallersNamespace) {
  const auto seen = As(User("b"))->Changes(0);
  ASSERT_TRUE(seen.ok());
  EXPECT_FALSE(seen->empty());
  for (const db::Change& change : *seen) EXPECT_EQ(change.experiment.ns, "b");
}

// A person is asked for the act that the method is.
TEST_F(GuardedClientTest, APersonIsJudgedByWhatTheyDo) {
  std::vector<std::pair<Permission, std::string>> judged;
  Principal ada{.role = Principal::Role::kClusterUser, .name = "ada"};
  ada.authorize = [&judged](Permission permission, const std::string& ns) {
    judged.emplace_back(permission, ns);
    return absl::PermissionDeniedError("judged");
  };
  const auto client = As(ada);
  for (const Asked& asked : Everything()) {
    const v1::Rights right = RightsOf("shirabe.v1.Shirabe/" + asked.method);
    judged.clear();
    const Status status = asked.ask(*client);
    if (right.audience() == v1::Rights::CALLERS) continue;
    EXPECT_TRUE(IsRefused(status)) << asked.method;
    EXPECT_THAT(judged, testing::ElementsAre(std::pair(right.permission(), std::string("a"))))
        << asked.method;
  }
  judged.clear();
  EXPECT_TRUE(IsRefused(SendVerb(*client, v1::Intent::DELETE)));
  EXPECT_THAT(judged, testing::ElementsAre(std::pair(v1::Rights::DELETE, std::string("a"))));
  judged.clear();
  EXPECT_TRUE(IsRefused(SendVerb(*client, v1::Intent::CANCEL)));
  EXPECT_THAT(judged, testing::ElementsAre(std::pair(v1::Rights::CHANGE, std::string("a"))));
}

v1::CallerRights RightsIn(Client& client, const std::string& ns) {
  v1::RightsRequest request;
  request.set_namespace_(ns);
  return client.Get<v1::CallerRights>("GetRights", request).value();
}

TEST_F(GuardedClientTest, RightsAreWhatTheCallerMayDo) {
  const auto user = As(User("b"));
  EXPECT_EQ(RightsIn(*user, "").namespace_(), "b");
  EXPECT_EQ(RightsIn(*user, "").name(), "user of b");
  EXPECT_TRUE(RightsIn(*user, "b").delete_());
  EXPECT_FALSE(RightsIn(*user, "a").read());
  Principal ada{.role = Principal::Role::kClusterUser, .name = "ada"};
  ada.authorize = [](Permission permission, const std::string&) -> Status {
    return permission == v1::Rights::READ ? absl::OkStatus() : absl::PermissionDeniedError("no");
  };
  const v1::CallerRights seen = RightsIn(*As(ada), "a");
  EXPECT_TRUE(seen.read());
  EXPECT_FALSE(seen.create() || seen.change() || seen.delete_());
  EXPECT_EQ(RightsIn(*As({.role = Principal::Role::kAdmin}), "").namespace_(), "default");
}

// Whoever may create is not one who may change what others have.
TEST_F(GuardedClientTest, SubmittingWhatIsThereIsAChange) {
  Principal ada{.role = Principal::Role::kClusterUser, .name = "ada"};
  ada.authorize = [](Permission permission, const std::string&) -> Status {
    return permission == v1::Rights::CHANGE ? absl::PermissionDeniedError("judged")
                                            : absl::OkStatus();
  };
  const auto client = As(ada);
  EXPECT_TRUE(client->Submit(Parsed("a", "new"), {}).ok());
  EXPECT_TRUE(IsRefused(client->Submit(Parsed("a", "secret"), {}).status()));
}

TEST_F(GuardedClientTest, WhatIsNotValidIsNotTaken) {
  v1::Experiment bad = Parsed("a", "bad");
  bad.mutable_spec()->mutable_parameters(0)->mutable_feasible_space()->set_min(2);
  const Status status = As({.role = Principal::Role::kAdmin})->Submit(bad, {}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("feasibleSpace"));
  EXPECT_TRUE(absl::IsNotFound(http_.client().GetExperiment({"a", "bad"}).status()));
}

TEST_F(GuardedClientTest, LearningFromAnotherNamespaceTakesARightThere) {
  v1::Experiment thief = Parsed("b", "thief");
  thief.mutable_spec()->mutable_shirabe()->mutable_warm_start()->add_experiments("a/secret");
  EXPECT_TRUE(IsRefused(As(User("b"))->Submit(thief, {}).status()));
  EXPECT_TRUE(IsRefused(As(User("b"))->Suggest(thief, 1).status()));
}

// Every method of every service that proto/ describes.
TEST(RightsTest, EveryMethodOfEveryServiceHasTheOption) {
  std::set<std::string> methods;
  const std::filesystem::path root = SourceDir();
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root / "proto")) {
    if (entry.path().extension() != ".proto") continue;
    const auto* file = google::protobuf::DescriptorPool::generated_pool()->FindFileByName(
        std::filesystem::relative(entry.path(), root).string());
    ASSERT_NE(file, nullptr) << entry.path();
    for (int i = 0; i < file->service_count(); ++i) {
      for (int j = 0; j < file->service(i)->method_count(); ++j) {
        methods.insert(
            absl::StrCat(file->service(i)->full_name(), "/", file->service(i)->method(j)->name()));
      }
    }
  }
  EXPECT_GT(methods.size(), 25u);
  for (const std::string& method : methods) {
    EXPECT_NE(RightsOf(method).audience(), v1::Rights::NO_CALLER) << method;
  }
}

}  // namespace
}  // namespace shirabe::service
