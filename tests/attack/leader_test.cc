// A controller whose API server goes away, or whose lease another one takes: it writes nothing
// meanwhile, and goes on by itself, in the same process.
#include "tests/attack/attacked_cluster.h"
#include "tests/support/eventually.h"

namespace shirabe::attack {
namespace {

using ::testing::HasSubstr;

class LeaderTest : public ControllerAttackTest {
 protected:
  static constexpr char kLeases[] = "/apis/coordination.k8s.io/v1/namespaces/sys/leases";

  void SetUp() override {
    ControllerAttackTest::SetUp();
    MakeNamespace("sys", "uid-sys");
    StartController({"--lease-namespace=sys"});
    ExpectAlive();
  }
  Json Lease() const { return cluster_.Find(std::string(kLeases) + "/shirabe-controller"); }
  bool Runs() const { return kill(controller_->pid(), 0) == 0; }
  int Writes() const {
    int writes = 0;
    for (const std::string& request : cluster_.requests()) {
      writes += request.find("GET ") != 0 && request.find("/leases") == request.npos ? 1 : 0;
    }
    return writes;
  }
  // Somebody else has it, and renews it.
  void TakeLease(const std::string& holder) {
    Json lease = Lease();
    const int64_t before = Number(lease, {"spec", "leaseTransitions"});
    lease["spec"]["holderIdentity"] = holder;
    lease["spec"]["leaseTransitions"] = before + 1;
    cluster_.Put(kLeases, lease);
  }
};

TEST_F(LeaderTest, AnApiServerThatIsAwayForTwelveSecondsEndsNothing) {
  const std::string held = Text(Lease(), {"spec", "holderIdentity"});
  cluster_.away = true;
  Pause(absl::Seconds(12));
  cluster_.away = false;
  const absl::Duration back = RealClock()->Monotonic();
  ExpectAlive();
  EXPECT_LT(RealClock()->Monotonic() - back, absl::Seconds(15));
  EXPECT_TRUE(Runs());
  EXPECT_EQ(Text(Lease(), {"spec", "holderIdentity"}), held);
  EXPECT_EQ(Number(Lease(), {"spec", "leaseTransitions"}), 1) << controller_->Err();
}

TEST_F(LeaderTest, WhoeverLosesTheLeaseWaitsForItAndWritesNothing) {
  TakeLease("another");
  ASSERT_TRUE(Eventually([&] {
    return controller_->Err().find("leadership was lost") != std::string::npos;
  })) << controller_->Err();
  Apply(Honest("red", "meanwhile"));
  const int before = Writes();
  Pause(absl::Seconds(2));
  EXPECT_EQ(Writes(), before);
  EXPECT_TRUE(Runs());
  TakeLease("");
  EXPECT_TRUE(Eventually([&] { return JobsOf("meanwhile").size() == 2; })) << controller_->Err();
  ExpectAlive();
  EXPECT_TRUE(Runs());
}

}  // namespace
}  // namespace shirabe::attack
