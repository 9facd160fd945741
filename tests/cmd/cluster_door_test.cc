// The way of kubectl-shirabe: a client, an API server that passes on what it is sent for a Service,
// and a server behind it that asks the cluster whose token comes with it.
#include "cmd/api_server_proxy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/local_client.h"
#include "client/remote_client.h"
#include "cmd/page_server.h"
#include "service/server.h"
#include "tests/integration/http_wire.h"
#include "tests/kube/fake_api_server.h"
#include "tests/support/stored.h"

namespace shirabe::cmd {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr char kProxy[] = "/api/v1/namespaces/system/services/https:shirabe:http/proxy";
constexpr char kAdminAccount[] = "/api/v1/namespaces/system/serviceaccounts/shirabe-admin/token";
constexpr char kTeamAccount[] = "/api/v1/namespaces/default/serviceaccounts/shirabe/token";

class KubeDoorTest : public testing::Test {
 protected:
  KubeDoorTest() : cluster_([this](kube::FakeExchange& exchange) { Answer(exchange); }) {
    // It has ended: the server is to answer, not to run it.
    v1::Condition* ended = stored_.experiment.mutable_status()->add_conditions();
    ended->set_type("Succeeded");
    ended->set_status("True");
    stored_.PutExperiment();
    auto tokens = service::Tokens::Load(stored_.home() + "/token");
    // Whoever shows the token of the team may look at the namespace `default`.
    tokens->SetCluster(
        [](const std::string& token, const std::string&) -> StatusOr<service::Principal> {
          if (token != "for.team.x")
            return absl::UnauthenticatedError("the cluster knows no such token");
          service::Principal person{.role = service::Principal::Role::kClusterUser};
          person.authorize = [](service::Permission act, const std::string& ns) -> Status {
            if (act == v1::Rights::READ && ns == "default") return absl::OkStatus();
            return absl::PermissionDeniedError("the team may only look at default");
          };
          return person;
        });
    server_ = service::Server::Start(
                  {.client = &stored_.client(), .clock = RealClock(), .tokens = *std::move(tokens)})
                  .value();
    client_ = Open("kube://system/shirabe");
  }

  std::unique_ptr<client::Client> Open(const std::string& address, const std::string& token = "") {
    auto channel = OpenApiServerProxy({.address = address,
                                       .config = cluster_.config(),
                                       .ns = "default",
                                       .token = token,
                                       .clock = RealClock()});
    CHECK(channel.ok());
    client::RemoteOptions options{.server = address, .clock = RealClock()};
    options.channel = *channel;
    return client::Connect(options).value();
  }

  // The API server: tokens of accounts, and what it passes on.
  void Answer(kube::FakeExchange& exchange) {
    const kube::FakeRequest& request = exchange.request();
    if (!installed_) return exchange.Reply(404, kube::StatusText(404, "NotFound", "not found"));
    if (request.path == kAdminAccount && refuse_admin_) {
      return exchange.Reply(403, kube::StatusText(403, "Forbidden", "may not create it"));
    }
    if (request.path == kTeamAccount && refuse_team_) {
      return exchange.Reply(404, kube::StatusText(404, "NotFound", "no such account"));
    }
    if (request.path == kAdminAccount || request.path == kTeamAccount) {
      const kube::Json body = kube::Json::parse(request.body, nullptr, false);
      EXPECT_EQ(body["spec"]["audiences"], kube::Json::array({"shirabe"}));
      return exchange.Reply(201, R"({"status": {"token": "for.team.x"}})");
    }
    if (!absl::StartsWith(request.path, kProxy)) {
      return exchange.Reply(404, kube::StatusText(404, "NotFound", "services not found"));
    }
    if (status_ != 0) return exchange.Reply(status_, kube::StatusText(status_, "X", "so it says"));
    ForwardRequest(exchange);
  }

  // Without the header that a real one keeps for itself.
  void ForwardRequest(kube::FakeExchange& exchange) {
    const kube::FakeRequest& request = exchange.request();
    const std::string address = server_->http_address();
    service::Wire wire(std::stoi(address.substr(address.rfind(':') + 1)));
    std::string text = absl::StrCat(request.method, " ", request.path.substr(sizeof kProxy - 1),
                                    " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n",
                                    "Content-Length: ", request.body.size(), "\r\n");
    for (const char* name : {"content-type", "x-shirabe-authorization"}) {
      const auto found = request.headers.find(name);
      if (found != request.headers.end()) absl::StrAppend(&text, name, ": ", found->second, "\r\n");
    }
    EXPECT_TRUE(wire.Send(text + "\r\n" + request.body));
    EXPECT_TRUE(wire.ReadToEnd());
    exchange.Raw(wire.data());
  }

  std::atomic<bool> installed_ = true;
  std::atomic<bool> refuse_admin_ = false;
  std::atomic<bool> refuse_team_ = false;
  std::atomic<int> status_ = 0;
  Stored stored_{/*read_only=*/false};
  std::unique_ptr<service::Server> server_;
  kube::FakeApiServer cluster_;
  std::unique_ptr<client::Client> client_;
};

TEST_F(KubeDoorTest, RecordsComeThroughTheApiServer) {
  for (int i = 1; i <= 3; ++i) stored_.Put(MakeTrial(i, v1::TRIAL_SUCCEEDED));
  const auto experiment = client_->GetExperiment(stored_.key());
  ASSERT_TRUE(experiment.ok()) << experiment.status();
  EXPECT_EQ(experiment->metadata().name(), "digits");
  const auto trials = client_->ListTrials({.experiment = stored_.key()});
  ASSERT_TRUE(trials.ok()) << trials.status();
  EXPECT_EQ(trials->size(), 3u);
  EXPECT_EQ(cluster_.Count(absl::StrCat("POST ", kAdminAccount)), 1) << "one token is enough";
}

TEST_F(KubeDoorTest, WhatTheServerSaysArrivesAsItIs) {
  const Status missing = client_->GetExperiment({"default", "nobody"}).status();
  EXPECT_TRUE(absl::IsNotFound(missing)) << missing;
  EXPECT_THAT(Message(missing), HasSubstr("nobody"));
  const Status denied = client_->ListExperiments("").status();
  EXPECT_TRUE(absl::IsPermissionDenied(denied)) << denied;
  EXPECT_THAT(Message(denied), HasSubstr("may only look at default"));
  v1::Intent pause;
  pause.set_verb(v1::Intent::PAUSE);
  EXPECT_TRUE(absl::IsPermissionDenied(client_->Send(stored_.key(), pause)));
}

// What `shirabe ui --server kube://system/shirabe` serves on loopback.
TEST_F(KubeDoorTest, ThePageOnLoopbackPassesOnWhatItsOwnPagesAsk) {
  const std::string home = stored_.home() + "/ui";
  const auto page = PageServer::Start({.client = client_.get(), .home = home});
  ASSERT_TRUE(page.ok()) << page.status();
  const std::string address = (*page)->Address(stored_.key());
  const size_t port_at = address.find(':', 7) + 1, token_at = address.find("#token=") + 7;
  const std::string host = absl::StrCat("127.0.0.1:", std::atoi(&address[port_at]));
  const std::string token = address.substr(token_at, address.find('&') - token_at);
  const auto ask = [&](const std::string& line, const std::string& headers) {
    service::Wire wire(std::atoi(&address[port_at]));
    EXPECT_TRUE(
        wire.Send(absl::StrCat(line, " HTTP/1.1\r\nContent-Length: 0\r\n", headers, "\r\n")));
    return wire.ReadReply();
  };
  const std::string one = "/api/v1/namespaces/default/experiments/digits";
  const std::string ours = absl::StrCat("Host: ", host, "\r\n");
  const std::string shown = absl::StrCat(ours, "Authorization: Bearer ", token, "\r\n");
  const auto got = ask("GET " + one, shown);
  EXPECT_EQ(got.status, 200) << got.body;
  EXPECT_THAT(got.body, HasSubstr("digits"));
  // The cluster decides, by its own rights, and its token stays in this process.
  const auto refused = ask("POST " + one + ":pause", shown);
  EXPECT_EQ(refused.status, 403);
  EXPECT_THAT(refused.body, HasSubstr("the team may only look at default"));
  for (const auto& reply : {got, refused}) {
    EXPECT_THAT(reply.head + reply.body, Not(HasSubstr("for.team.x")));
  }
  EXPECT_THAT(address, Not(HasSubstr("for.team.x")));
  // Pages of other sites, names that lead here, and those who do not have the address.
  const auto passed_on = [&] {
    int calls = 0;
    for (const char* method : {"GetExperiment", "SendIntent", "DeleteExperiment"}) {
      calls += cluster_.Count(absl::StrCat("POST ", kProxy, "/shirabe.v1.Shirabe/", method));
    }
    return calls;
  };
  const int asked = passed_on();
  EXPECT_GE(asked, 2);
  for (const std::string& line : {"GET " + one, "POST " + one + ":pause", "DELETE " + one}) {
    EXPECT_EQ(ask(line, shown + "Origin: https://evil.example\r\n").status, 403) << line;
    EXPECT_EQ(ask(line, "Host: evil.example\r\nAuthorization: Bearer " + token + "\r\n").status,
              403)
        << line;
    EXPECT_EQ(ask(line, ours).status, 401) << line;
    EXPECT_EQ(ask(line, ours + "Authorization: Bearer for.team.x\r\n").status, 401) << line;
  }
  EXPECT_EQ(passed_on(), asked);
  EXPECT_EQ(ask("POST " + one + ":pause", shown + "Origin: http://" + host + "\r\n").status, 403)
      << "passed on, and refused by the cluster";
}

// The page's own token opens everything here; on the server its user may only look.
TEST_F(KubeDoorTest, ThePageKnowsTheRightsOfItsUserOnTheServer) {
  const auto page = PageServer::Start({.client = client_.get(), .home = stored_.home() + "/ui"});
  ASSERT_TRUE(page.ok()) << page.status();
  const std::string address = (*page)->Address(stored_.key());
  const size_t token_at = address.find("#token=") + 7;
  const int port = std::atoi(&address[address.find(':', 7) + 1]);
  const std::string headers =
      absl::StrCat("Host: 127.0.0.1:", port, "\r\nAuthorization: Bearer ",
                   address.substr(token_at, address.find('&') - token_at), "\r\n");
  const auto rights = [&](const std::string& query) {
    service::Wire wire(port);
    EXPECT_TRUE(wire.Send(absl::StrCat("GET /api/v1/rights", query, " HTTP/1.1\r\n",
                                       "Content-Length: 0\r\n", headers, "\r\n")));
    return kube::Json::parse(wire.ReadReply().body);
  };
  const kube::Json own = rights("");
  EXPECT_EQ(own["namespace"], "default");
  EXPECT_EQ(own["read"], true);
  for (const char* name : {"create", "change", "delete"}) EXPECT_EQ(own[name], false) << name;
  EXPECT_EQ(rights("?namespace=other")["read"], false);
}

TEST_F(KubeDoorTest, WhoIsNoAdministratorComesAsHisNamespace) {
  refuse_admin_ = true;
  EXPECT_TRUE(client_->GetExperiment(stored_.key()).ok());
  EXPECT_EQ(cluster_.Count(absl::StrCat("POST ", kTeamAccount)), 1);
}

TEST_F(KubeDoorTest, WhoMayMakeNoTokenIsToldWhatToAskFor) {
  refuse_admin_ = refuse_team_ = true;
  const Status status = client_->GetExperiment(stored_.key()).status();
  EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
  EXPECT_THAT(Message(status), AllOf(HasSubstr("create serviceaccount shirabe"),
                                     HasSubstr("--serviceaccount=default:shirabe")));
}

TEST_F(KubeDoorTest, AClusterWithoutShirabeIsToldFromOneThatRefuses) {
  installed_ = false;
  const Status status = client_->GetExperiment(stored_.key()).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(Message(status), AllOf(HasSubstr("there is no Shirabe in namespace system"),
                                     HasSubstr("kubectl apply --server-side -k")));
}

TEST_F(KubeDoorTest, ATokenThatIsNamedIsShownInstead) {
  EXPECT_TRUE(Open("kube://system/shirabe", "for.team.x")->GetExperiment(stored_.key()).ok());
  const auto wrong = Open("kube://system/shirabe", "some.thing.else");
  EXPECT_TRUE(absl::IsUnauthenticated(wrong->GetExperiment(stored_.key()).status()));
  EXPECT_EQ(cluster_.Count(absl::StrCat("POST ", kAdminAccount)), 0);
}

TEST_F(KubeDoorTest, WhatStandsBetweenIsSaidWithTheFix) {
  const auto ask = [&] {
    return Open("kube://system/shirabe")->GetExperiment(stored_.key()).status();
  };
  status_ = 404;
  EXPECT_TRUE(absl::IsUnavailable(ask())) << "it is no experiment that is missing";
  EXPECT_THAT(Message(ask()), AllOf(HasSubstr("system/shirabe"), HasSubstr("kubectl apply")));
  status_ = 403;
  EXPECT_TRUE(absl::IsPermissionDenied(ask()));
  EXPECT_THAT(Message(ask()), HasSubstr("shirabe-connect"));
  status_ = 503;
  EXPECT_TRUE(absl::IsUnavailable(ask()));
  EXPECT_THAT(Message(ask()), AllOf(HasSubstr("no controller is ready"), HasSubstr("get pods")));
}

TEST_F(KubeDoorTest, AWaitEndsWithItsChange) {
  const auto revision = client_->Revision();
  ASSERT_TRUE(revision.ok()) << revision.status();
  std::jthread writer([&] { stored_.Put(MakeTrial(1, v1::TRIAL_RUNNING)); });
  const auto next = client_->AwaitChange(*revision, absl::Seconds(20));
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_GT(*next, *revision);
}

TEST_F(KubeDoorTest, WhatIsNoAddressIsSaid) {
  for (const char* address : {"kube://", "kube://system", "kube://a/b/c", "kube://A/b"}) {
    const auto channel =
        OpenApiServerProxy({.address = address, .config = cluster_.config(), .clock = RealClock()});
    EXPECT_TRUE(absl::IsInvalidArgument(channel.status())) << address;
  }
}

TEST(PluginTest, IsKnownByItsName) {
  SetPlugin("/usr/local/bin/kubectl-shirabe");
  EXPECT_TRUE(IsPlugin());
  SetPlugin("/home/kubectl-x/shirabe");
  EXPECT_FALSE(IsPlugin());
}

}  // namespace
}  // namespace shirabe::cmd
