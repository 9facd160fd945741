// Calls that wait, by the hundred, and what becomes of others meanwhile.
#include <grpcpp/generic/generic_stub.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>

#include "tests/attack/attacked_server.h"
#include "tests/support/eventually.h"

namespace shirabe::attack {
namespace {

using service::RequestText;
using service::Wire;
using service::WireReply;
using testing::HasSubstr;

constexpr char kRedTenant[] = "/api/v1/namespaces/red/experiments/waits";
constexpr char kBlue[] = "/api/v1/namespaces/blue/experiments/works";

class WaitsAttack : public AttackTest {
 protected:
  // An experiment of red's whose asks wait, and one of blue's with a trial to tell.
  void ServeBoth() {
    Serve();
    ASSERT_EQ(Create("red", Spec(kAskedSpec, "red", "waits"), kRedToken), 201);
    ASSERT_EQ(Create("blue", Spec(kAskedSpec, "blue", "works"), kBlueToken), 201);
    ASSERT_LT(Http(absl::StrCat("POST ", kRedTenant, ":pause"), kRedToken).status, 300);
    const WireReply asked =
        Http(absl::StrCat("POST ", kBlue, ":ask"), kBlueToken, R"({"caller": "worker"})");
    ASSERT_EQ(asked.status, 200) << asked.body;
  }
  // The longest of some tells of blue's.
  absl::Duration LongestTell() {
    absl::Duration longest = absl::ZeroDuration();
    for (int i = 0; i < 10; ++i) {
      const absl::Duration began = RealClock()->Monotonic();
      const WireReply told =
          Http(absl::StrCat("POST ", kBlue, "/trials/1:tell"), kBlueToken,
               absl::StrCat(R"({"metrics": {"loss": 1}, "step": )", ++step_, "}"));
      EXPECT_EQ(told.status, 200) << told.body;
      longest = std::max(longest, RealClock()->Monotonic() - began);
    }
    return longest;
  }
  std::unique_ptr<Wire> Ask(int number) const {
    auto wire = std::make_unique<Wire>(http_port_);
    wire->Send(RequestText(absl::StrCat("POST ", kRedTenant, ":ask"), kRedToken,
                           absl::StrCat(R"({"caller": "w)", number, R"(", "waitSeconds": 30})")));
    return wire;
  }

 private:
  int step_ = 0;
};

// Calls under way over the callback API, without a thread each here either.
class CallsWaits {
 public:
  ~CallsWaits() {
    for (auto& context : contexts_) context->TryCancel();
    std::unique_lock lock(mutex_);
    over_.wait(lock, [this] { return open_ == 0; });
  }
  void AwaitChange(v1::Shirabe::Stub& stub, const std::string& token) {
    contexts_.push_back(std::make_unique<grpc::ClientContext>());
    contexts_.back()->AddMetadata("authorization", "Bearer " + token);
    auto request = std::make_shared<v1::AwaitChangeRequest>();  // shared: with the callback
    auto reply = std::make_shared<v1::Revision>();
    request->set_after(int64_t{1} << 60);
    request->mutable_patience()->set_seconds(50);
    {
      std::lock_guard lock(mutex_);
      ++open_;
    }
    stub.async()->AwaitChange(contexts_.back().get(), request.get(), reply.get(),
                              [this, request, reply](const grpc::Status& status) {
                                std::lock_guard lock(mutex_);
                                if (status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED) {
                                  refusal_ = status.error_message();
                                  ++refused_;
                                }
                                --open_;
                                over_.notify_all();
                              });
  }
  int refused() {
    std::lock_guard lock(mutex_);
    return refused_;
  }
  std::string refusal() {
    std::lock_guard lock(mutex_);
    return refusal_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable over_;
  int open_ = 0;
  int refused_ = 0;
  std::string refusal_;
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts_;
};

// attacks: HTTP POST /api/v1/namespaces/{namespace}/experiments/{name}:ask
// attacks: HTTP POST /api/v1/namespaces/{namespace}/experiments/{name}/trials/{trial}:tell
TEST_F(WaitsAttack, AsksOfAnotherExperiment) {
  ServeBoth();
  std::vector<std::unique_ptr<Wire>> asks;
  for (int i = 0; i < 100; ++i) asks.push_back(Ask(i));
  EXPECT_LT(LongestTell(), absl::Seconds(1));
  // They were waiting all the while, and hear of what they wait for.
  ASSERT_LT(Http(absl::StrCat("POST ", kRedTenant, ":resume"), kRedToken).status, 300);
  EXPECT_EQ(asks[0]->ReadReply().status, 200);
  ExpectAlive();
}

// attacks: HTTP POST /api/v1/namespaces/{namespace}/experiments/{name}:ask
TEST_F(WaitsAttack, MoreAsksThanOneCallerMayHave) {
  ServeBoth();
  std::vector<std::unique_ptr<Wire>> asks;
  for (int i = 0; i < 300; ++i) asks.push_back(Ask(i));
  const auto count_refused = [&] {
    return std::count_if(asks.begin(), asks.end(), [](auto& ask) {
      return ask->ReadUntil("429 Too Many", absl::ZeroDuration());
    });
  };
  EXPECT_TRUE(Eventually(
      [&] {
        for (auto& ask : asks) (void)ask->ReadUntil("429 Too Many", absl::Milliseconds(2));
        return count_refused() >= 44;
      },
      absl::Seconds(10)));
  EXPECT_EQ(count_refused(), 44);
  for (auto& ask : asks) {
    if (!ask->ReadUntil("429 Too Many", absl::ZeroDuration())) continue;
    EXPECT_THAT(ask->data(), HasSubstr("Retry-After"));
    EXPECT_THAT(ask->data(), HasSubstr("256 waiting calls"));
  }
  EXPECT_LT(LongestTell(), absl::Seconds(1));
  // Those who leave make room.
  asks.clear();
  EXPECT_TRUE(Eventually([&] {
    return Http(absl::StrCat("POST ", kRedTenant, ":ask"), kRedToken,
                R"({"caller": "later", "waitSeconds": 0.1})")
               .status == 200;
  }));
}

// attacks: gRPC shirabe.v1.Shirabe/AwaitChange
TEST_F(WaitsAttack, AwaitChangeBySixHundred) {
  ServeBoth();
  std::vector<std::unique_ptr<v1::Shirabe::Stub>> stubs;
  for (int i = 0; i < 10; ++i) stubs.push_back(Shirabe());
  {
    CallsWaits calls;
    for (int i = 0; i < 600; ++i) calls.AwaitChange(*stubs[static_cast<size_t>(i) % 10], kRedToken);
    EXPECT_TRUE(Eventually([&] { return calls.refused() == 600 - 256; }, absl::Seconds(10)))
        << calls.refused();
    EXPECT_THAT(calls.refusal(), HasSubstr("256 waiting calls"));
    for (int i = 0; i < 5; ++i) {
      v1::Experiment experiment;
      v1::ExperimentRef key;
      key.set_namespace_("blue");
      key.set_name("works");
      const auto status =
          Shirabe()->GetExperiment(As(kBlueToken, absl::Seconds(1)).get(), key, &experiment);
      EXPECT_TRUE(status.ok()) << status.error_message();
    }
    EXPECT_LT(LongestTell(), absl::Seconds(1));
  }
  // Those who leave make room.
  EXPECT_TRUE(Eventually([&] {
    v1::AwaitChangeRequest request;
    request.set_after(int64_t{1} << 60);
    request.mutable_patience()->set_nanos(1000);
    v1::Revision reply;
    return Shirabe()->AwaitChange(As(kRedToken).get(), request, &reply).ok();
  }));
}

// attacks: gRPC shirabe.v1.Shirabe/Ask, gRPC shirabe.v1.Shirabe/DeleteExperiment
TEST_F(WaitsAttack, AskAndDeleteEndWithWhatTheyWaitFor) {
  ServeBoth();
  v1::AskRequest ask;
  ask.mutable_experiment()->set_namespace_("red");
  ask.mutable_experiment()->set_name("waits");
  ask.set_caller("g");
  ask.mutable_patience()->set_nanos(300'000'000);
  v1::AskReply none;
  ASSERT_TRUE(Shirabe()->Ask(As(kRedToken).get(), ask, &none).ok());
  EXPECT_FALSE(none.has_trial());
  ASSERT_LT(Http(absl::StrCat("POST ", kRedTenant, ":resume"), kRedToken).status, 300);
  ask.mutable_patience()->set_seconds(20);
  v1::AskReply asked;
  ASSERT_TRUE(Shirabe()->Ask(As(kRedToken, absl::Seconds(30)).get(), ask, &asked).ok());
  EXPECT_TRUE(asked.has_trial());
  v1::DeleteRequest deletion;
  *deletion.mutable_experiment() = ask.experiment();
  deletion.mutable_patience()->set_seconds(20);
  v1::Done done;
  const auto status =
      Shirabe()->DeleteExperiment(As(kRedToken, absl::Seconds(30)).get(), deletion, &done);
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(Http(absl::StrCat("GET ", kRedTenant), kRedToken).status, 404);
}

// attacks: gRPC grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo
TEST_F(WaitsAttack, ReflectionWithoutATokenBySixHundred) {
  ServeBoth();
  grpc::CompletionQueue queue;
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<grpc::GenericClientAsyncReaderWriter>> streams;
  for (int c = 0; c < 10; ++c) {
    grpc::GenericStub stub(Channel(grpc_));
    for (int i = 0; i < 60; ++i) {
      contexts.push_back(std::make_unique<grpc::ClientContext>());
      streams.push_back(stub.PrepareCall(
          contexts.back().get(), "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
          &queue));
      streams.back()->StartCall(nullptr);
    }
  }
  void* tag = nullptr;
  bool ok = false;
  for (size_t i = 0; i < streams.size(); ++i) ASSERT_TRUE(queue.Next(&tag, &ok));
  v1::ExperimentRef key;
  key.set_namespace_("blue");
  key.set_name("works");
  for (int i = 0; i < 5; ++i) {
    v1::Experiment experiment;
    const auto status =
        Shirabe()->GetExperiment(As(kBlueToken, absl::Seconds(1)).get(), key, &experiment);
    EXPECT_TRUE(status.ok()) << status.error_message();
  }
  for (auto& context : contexts) context->TryCancel();
  streams.clear();
  queue.Shutdown();
  while (queue.Next(&tag, &ok)) continue;
}

// attacks: HTTP GET /api/v1/watch, HTTP GET /api/v1/namespaces/{namespace}/watch
TEST_F(WaitsAttack, MoreStreamsThanOneCallerMayHave) {
  ServeBoth();
  std::vector<std::unique_ptr<Wire>> wires;
  int refused = 0;
  for (int i = 0; i < 530; ++i) {
    wires.push_back(std::make_unique<Wire>(http_port_));
    wires.back()->Send(RequestText("GET /api/v1/namespaces/red/watch", kRedToken));
    ASSERT_TRUE(wires.back()->ReadUntil("\r\n\r\n"));
    if (absl::StrContains(wires.back()->data(), "429 Too Many")) ++refused;
  }
  EXPECT_EQ(refused, 18);
  Wire blue(http_port_);
  blue.Send(RequestText("GET /api/v1/namespaces/blue/watch", kBlueToken));
  EXPECT_TRUE(blue.ReadUntil(": watching"));
  EXPECT_LT(LongestTell(), absl::Seconds(1));
  EXPECT_TRUE(blue.ReadUntil("works-1"));
}

}  // namespace
}  // namespace shirabe::attack
