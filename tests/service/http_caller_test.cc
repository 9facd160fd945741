// What is computed for a caller of HTTP ends when the caller has gone.
#include <atomic>

#include "base/cancellation.h"
#include "service/http/http_server.h"
#include "suggestion/algorithm.h"
#include "tests/integration/http_wire.h"
#include "tests/service/http_fixture.h"

namespace shirabe::service {
namespace {

std::atomic<bool> endless = false;
std::atomic<bool> slow_begun = false;
std::atomic<bool> slow_ended = false;

// Random search; where it is to be endless, it computes until nobody wants the answer.
class Slow : public suggestion::Algorithm {
 public:
  explicit Slow(std::unique_ptr<Algorithm> random) : random_(std::move(random)) {}
  static StatusOr<std::unique_ptr<Algorithm>> Create(const suggestion::Problem& problem) {
    const auto* info = Registry<suggestion::AlgorithmInfo>::Get().Find("random");
    ASSIGN_OR_RETURN(auto random, info->create(problem));
    return std::make_unique<Slow>(std::move(random));
  }
  StatusOr<suggestion::Proposal> Propose(const suggestion::History& history, int count,
                                         const Rng& root) override {
    slow_begun = true;
    const absl::Duration deadline = RealClock()->Monotonic() + absl::Seconds(30);
    while (endless && !IsCancelled() && RealClock()->Monotonic() < deadline) {
    }
    slow_ended = true;
    return random_->Propose(history, count, root);
  }

 private:
  const std::unique_ptr<Algorithm> random_;
};

SHIRABE_REGISTER(suggestion::AlgorithmInfo,
                 {.name = "slow", .help = "random, for tests", .create = &Slow::Create});

bool Within(absl::Duration patience, const std::atomic<bool>& flag) {
  const absl::Duration deadline = RealClock()->Monotonic() + patience;
  while (!flag && RealClock()->Monotonic() < deadline) Pause(absl::Milliseconds(10));
  return flag;
}

TEST(HttpCallerTest, SuggestionsAreNotComputedForThoseWhoHaveGone) {
  HttpFixture fixture;
  auto server = HttpServer::Start({.address = "127.0.0.1:0", .context = fixture.context()});
  ASSERT_TRUE(server.ok()) << server.status();
  const std::string address = (*server)->address();
  const int port = std::stoi(address.substr(address.rfind(':') + 1));
  const std::string spec =
      absl::StrReplaceAll(AskedSpec("x"), {{"algorithmName: random", "algorithmName: slow"}});
  endless = true;
  slow_begun = slow_ended = false;
  {
    const Wire wire(port);
    wire.Send(RequestText("POST /api/v1/suggest", kTeamToken, spec));
    ASSERT_TRUE(Within(absl::Seconds(10), slow_begun));
    EXPECT_FALSE(Within(absl::Milliseconds(500), slow_ended)) << "the caller is still there";
  }
  EXPECT_TRUE(Within(absl::Seconds(2), slow_ended));
  endless = false;
}

}  // namespace
}  // namespace shirabe::service
