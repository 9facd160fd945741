#include "trial/local/gpu_pool.h"

#include "tests/support/parse_struct.h"

namespace shirabe::trial {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(ParseDevices, ReadsIndices) {
  EXPECT_THAT(ParseDevices("GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-11111111-2222)\n"
                           "GPU 1: NVIDIA H100 80GB HBM3 (UUID: GPU-33333333-4444)\n"),
              ElementsAre("0", "1"));
  EXPECT_THAT(ParseDevices(""), IsEmpty());
  EXPECT_THAT(ParseDevices("No devices were found\n"), IsEmpty());
  EXPECT_THAT(ParseDevices("GPU\nGPU 0 without a colon\n\0"), IsEmpty());
}

TEST(ParseDevices, PrefersSlices) {
  EXPECT_THAT(ParseDevices("GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-1)\n"
                           "  MIG 1g.5gb      Device  0: (UUID: MIG-a)\n"
                           "  MIG 1g.5gb      Device  1: (UUID: MIG-b)\n"),
              ElementsAre("MIG-a", "MIG-b"));
}

TEST(RequestedGpus, IsTheMostOfAnyContainer) {
  EXPECT_EQ(RequestedGpus(ParseStruct(R"({"spec": {"template": {"spec": {"containers": [
      {"resources": {"limits": {"nvidia.com/gpu": "1"}}},
      {"resources": {"requests": {"nvidia.com/gpu": 4}, "limits": {"cpu": 2}}}]}}}})")),
            4);
  EXPECT_EQ(RequestedGpus({}), 0);
  for (const char* odd : {"\"${trialParameters.gpus}\"", "-3", "1e300", "null", "{}", "[]"}) {
    EXPECT_EQ(RequestedGpus(ParseStruct(
                  std::string(
                      R"({"spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": )") +
                  odd + "}}}]}}")),
              0)
        << odd;
  }
}

TEST(GpuPool, GivesEachDeviceOnce) {
  GpuPool pool({"0", "1", "2", "1", ""});
  EXPECT_THAT(*pool.Allocate(2), ElementsAre("0", "1"));
  EXPECT_EQ(pool.Allocate(2).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(*pool.Allocate(1), ElementsAre("2"));
  EXPECT_THAT(*pool.Allocate(0), IsEmpty());
  pool.Release({"1"});
  EXPECT_THAT(*pool.Allocate(1), ElementsAre("1"));
}

TEST(GpuPool, MarksWhatIsFoundInUse) {
  GpuPool pool({"0", "1"});
  pool.Mark({"0", "of another machine"});
  EXPECT_THAT(*pool.Allocate(1), ElementsAre("1"));
  EXPECT_EQ(pool.Allocate(1).status().code(), absl::StatusCode::kResourceExhausted);
  pool.Release({"0", "of another machine"});
  EXPECT_THAT(*pool.Allocate(1), ElementsAre("0"));
}

TEST(GpuPool, SaysWhyOneWaits) {
  GpuPool pool({"0", "1"});
  EXPECT_EQ(pool.Waiting(0), "");
  EXPECT_EQ(pool.Waiting(2), "");
  ASSERT_TRUE(pool.Allocate(1).ok());
  EXPECT_EQ(pool.Waiting(1), "");
  EXPECT_EQ(pool.Waiting(2), "waits for 2 GPUs: 1 of 2 free");
  EXPECT_THAT(pool.Waiting(3), HasSubstr("offers 2"));
  const auto too_many = pool.Allocate(3);
  EXPECT_EQ(too_many.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(too_many.status()), HasSubstr("3 GPUs"));
  EXPECT_THAT(Message(too_many.status()), HasSubstr("0,1"));
}

TEST(GpuPool, AMachineWithoutDevicesSaysSo) {
  const auto none = GpuPool({}).Allocate(1);
  EXPECT_EQ(none.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(none.status()), HasSubstr("offers none"));
}

}  // namespace
}  // namespace shirabe::trial
