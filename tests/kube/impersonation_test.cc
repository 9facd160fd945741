// Writes as an account of the namespace: what is asked for as whom, and how refusals are told.
#include "kube/impersonation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>

#include "absl/strings/str_cat.h"
#include "kube/api_client.h"
#include "tests/kube/fake_api_server.h"

namespace shirabe::kube {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const Resource kActedPods{"", "v1", "pods", "Pod"};
const Resource kActedJobs{"batch", "v1", "jobs", "Job"};
const Resource kReviews{"authentication.k8s.io", "v1", "tokenreviews", "TokenReview", false};
constexpr char kTeamUser[] = "system:serviceaccount:team:shirabe-trials";

std::string Forbidden(const std::string& message) { return StatusText(403, "Forbidden", message); }

std::string MayNot(const std::string& verb) {
  return Forbidden(absl::StrCat("jobs.batch is forbidden: User \"", kTeamUser, "\" cannot ", verb,
                                " resource \"jobs\" in API group \"batch\" in the namespace ",
                                "\"team\""));
}

Json JobIn(const std::string& ns) {
  return {{"apiVersion", "batch/v1"},
          {"kind", "Job"},
          {"metadata", {{"namespace", ns}, {"name", "a-1-a1"}}}};
}

class ImpersonationTest : public testing::Test {
 protected:
  ImpersonationTest()
      : server_([this](FakeExchange& exchange) {
          const FakeRequest& request = exchange.request();
          const auto user = request.headers.find("impersonate-user");
          {
            const std::lock_guard lock(mutex_);
            asked_.push_back(absl::StrCat(request.method, " ", request.path, " as ",
                                          user == request.headers.end() ? "-" : user->second));
            groups_ |= request.headers.contains("impersonate-group");
          }
          const bool writes = request.method != "GET";
          if (!writes) return exchange.Reply(found_ == 200 ? 200 : 404, body_of_get_);
          exchange.Reply(answer_, body_);
        }) {
    ClientOptions options;
    options.tries = 1;
    options.act_as = "shirabe-trials";
    client_ = *Client::Create(server_.config(), RealClock(), options);
  }

  void Answer(int status, const std::string& body) {
    answer_ = status;
    body_ = body;
  }
  // What a look at the object, or at its namespace, finds.
  void Find(int status, const std::string& body) {
    found_ = status;
    body_of_get_ = status == 200 ? body : StatusText(404, "NotFound", "not found");
  }
  std::vector<std::string> Asked() {
    const std::lock_guard lock(mutex_);
    return asked_;
  }

  std::mutex mutex_;
  std::vector<std::string> asked_;
  bool groups_ = false;
  int answer_ = 200, found_ = 200;
  std::string body_ = "{}", body_of_get_ = "{}";
  FakeApiServer server_;
  std::unique_ptr<Client> client_;
};

TEST_F(ImpersonationTest, WritesInANamespaceAreItsAccountsAndReadsAreOurs) {
  const Ref job{kActedJobs, "team", "a-1-a1"};
  ASSERT_TRUE(client_->Create(kActedJobs, JobIn("team")).ok());
  ASSERT_TRUE(client_->Patch(job, PatchType::kMerge, {{"spec", {}}}, "").ok());
  ASSERT_TRUE(client_->Delete(job, {}).ok());
  ASSERT_TRUE(client_->DeleteCollection({kActedJobs, "team", "a in (b,c)", ""}, {}).ok());
  ASSERT_TRUE(client_->Get(job).ok());
  ASSERT_TRUE(client_->Create(kReviews, {{"metadata", {{"name", "r"}}}}).ok());
  ASSERT_TRUE(client_->Patch({kActedPods, "team", "p"}, PatchType::kMerge, {{"a", 1}}, "").ok());
  ASSERT_TRUE(client_->Delete({kActedPods, "team", "p"}, {}).ok());
  const std::string as = absl::StrCat(" as ", kTeamUser);
  EXPECT_THAT(Asked(),
              ElementsAre("POST /apis/batch/v1/namespaces/team/jobs" + as,
                          "PATCH /apis/batch/v1/namespaces/team/jobs/a-1-a1" + as,
                          "DELETE /apis/batch/v1/namespaces/team/jobs/a-1-a1" + as,
                          "DELETE /apis/batch/v1/namespaces/team/jobs" + as,
                          "GET /apis/batch/v1/namespaces/team/jobs/a-1-a1 as -",
                          "POST /apis/authentication.k8s.io/v1/tokenreviews as -",
                          "PATCH /api/v1/namespaces/team/pods/p as -",  // a finalizer of ours
                          "DELETE /api/v1/namespaces/team/pods/p" + as));
  EXPECT_FALSE(groups_) << "the API server knows the groups of an account";
}

TEST_F(ImpersonationTest, ARefusalNamesAccountRightAndWhatToGrant) {
  Answer(403, MayNot("create"));
  const Status status = client_->Create(kActedJobs, JobIn("team")).status();
  EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
  EXPECT_TRUE(IsAccountRefused(status));
  EXPECT_THAT(
      Message(status),
      AllOf(HasSubstr("ServiceAccount team/shirabe-trials may not create jobs.batch in namespace "
                      "team"),
            HasSubstr("kubectl -n team create rolebinding shirabe-trials "
                      "--clusterrole=shirabe-trials --serviceaccount=team:shirabe-trials")));
}

TEST_F(ImpersonationTest, ThatWeMayNotActAsItIsSaidAsOurOwnLack) {
  Answer(403, Forbidden("serviceaccounts \"shirabe-trials\" is forbidden: User \"system:service"
                        "account:shirabe-system:shirabe-controller\" cannot impersonate resource "
                        "\"serviceaccounts\" in API group \"\" in the namespace \"team\""));
  const Status status = client_->Delete({kActedJobs, "team", "a-1-a1"}, {});
  EXPECT_TRUE(IsAccountRefused(status));
  EXPECT_THAT(Message(status), HasSubstr("the controller may not act as ServiceAccount "
                                         "team/shirabe-trials"));
}

TEST_F(ImpersonationTest, AQuotaIsNoLackOfRights) {
  Answer(403, Forbidden("jobs.batch \"a-1-a1\" is forbidden: exceeded quota: few"));
  const Status status = client_->Create(kActedJobs, JobIn("team")).status();
  EXPECT_TRUE(absl::IsPermissionDenied(status));
  EXPECT_FALSE(IsAccountRefused(status));
  EXPECT_THAT(Message(status), AllOf(HasSubstr("exceeded quota"), Not(HasSubstr("rolebinding"))));
}

// Rights go before what they were for where a namespace is deleted.
TEST_F(ImpersonationTest, WhatIsGoneNeedsNoRight) {
  Answer(403, MayNot("delete"));
  Find(404, "");
  EXPECT_TRUE(absl::IsNotFound(client_->Delete({kActedJobs, "team", "a-1-a1"}, {})));
  Answer(403, MayNot("deletecollection"));
  EXPECT_TRUE(absl::IsNotFound(client_->DeleteCollection({kActedJobs, "team", "a", ""}, {})));
  Answer(403, MayNot("create"));
  EXPECT_TRUE(absl::IsNotFound(client_->Create(kActedJobs, JobIn("team")).status()));
  Find(200, R"({"metadata": {"deletionTimestamp": "2026-11-26T00:00:00Z"}})");
  EXPECT_TRUE(absl::IsNotFound(client_->Create(kActedJobs, JobIn("team")).status()));
  Find(200, "{}");
  EXPECT_TRUE(IsAccountRefused(client_->Create(kActedJobs, JobIn("team")).status()));
}

// attacks: names that end a header, or a user's name
TEST_F(ImpersonationTest, NamesThatCouldBeReadAsMoreReachNoServer) {
  for (const std::string ns : {"team\r\nImpersonate-Group: system:masters", "team:admin", "a\nb",
                               "team\r", "Team", "a b", "..", "system:masters", "\u00fc"}) {
    const Status made = client_->Create(kActedJobs, JobIn(ns)).status();
    EXPECT_TRUE(absl::IsInvalidArgument(made)) << ns << ": " << made;
    EXPECT_TRUE(absl::IsInvalidArgument(client_->Delete({kActedJobs, ns, "a"}, {}))) << ns;
    EXPECT_TRUE(absl::IsInvalidArgument(client_->DeleteCollection({kActedJobs, ns, "a", ""}, {})))
        << ns;
  }
  for (const Query& all : {Query{kActedJobs, "", "a=b", ""}, Query{kActedJobs, "team", "", ""}}) {
    EXPECT_TRUE(absl::IsInvalidArgument(client_->DeleteCollection(all, {})));
  }
  EXPECT_THAT(Asked(), testing::IsEmpty());
}

TEST(AccountNameTest, IsOneAsKubernetesHasThem) {
  for (const char* good : {"shirabe-trials", "a", "a.b-1"}) {
    EXPECT_TRUE(CheckAccountName(good).ok()) << good;
  }
  for (const std::string& bad :
       {std::string(""), std::string("A"), std::string("a:b"), std::string("a\r\nX: y"),
        std::string("-a"), std::string("a."), std::string(254, 'a'), std::string("a\0b", 3)}) {
    EXPECT_TRUE(absl::IsInvalidArgument(CheckAccountName(bad))) << bad;
  }
}

}  // namespace
}  // namespace shirabe::kube
