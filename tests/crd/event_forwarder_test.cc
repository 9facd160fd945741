// Events of an object: what is made, and what is given up.
#include "crd/event_forwarder.h"

#include <gtest/gtest.h>

#include "crd/resource_kinds.h"
#include "kube/api_errors.h"
#include "tests/crd/fake_cluster.h"

namespace shirabe::crd {
namespace {

using kube::Json;

// Answers a Create as the API server does, word for word.
class RefusingCluster : public FakeCluster {
 public:
  RefusingCluster(int code, std::string reason, std::string message)
      : code_(code), reason_(std::move(reason)), message_(std::move(message)) {}
  StatusOr<Json> Create(const kube::Resource& resource, const Json&) override {
    return kube::ToStatus("create " + resource.plural, code_,
                          {{"reason", reason_}, {"message", message_}});
  }

 private:
  const int code_;
  const std::string reason_;
  const std::string message_;
};

Status Made(kube::Client& cluster) {
  const Json object = {
      {"kind", "Experiment"},
      {"metadata", {{"name", "digits"}, {"namespace", "team"}, {"uid", "0123456789"}}}};
  const SyncContext context = {.kube = &cluster};
  return CreateEvent(context, object,
                     {.warning = true,
                      .reason = "TrialFailed",
                      .note = "digits-1: exit code 1",
                      .id = "7",
                      .time = absl::UnixEpoch()});
}

TEST(CreateEventTest, NamesTheObjectAndIsMadeOnce) {
  FakeCluster cluster;
  EXPECT_TRUE(Made(cluster).ok());
  EXPECT_TRUE(Made(cluster).ok());
  const auto events = cluster.All("events");
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0]["metadata"]["name"], "digits.01234567.7");
  EXPECT_EQ(events[0]["involvedObject"]["name"], "digits");
  EXPECT_EQ(events[0]["type"], "Warning");
  EXPECT_EQ(events[0]["message"], "digits-1: exit code 1");
}

// Otherwise the controller would try again, and warn, until the namespace has gone.
TEST(CreateEventTest, InANamespaceThatGoesThereIsNoneAndNoError) {
  RefusingCluster going(
      403, "Forbidden",
      "events \"digits.01234567.7\" is forbidden: unable to create new content in "
      "namespace team because it is being terminated");
  EXPECT_TRUE(Made(going).ok());
  RefusingCluster gone(404, "NotFound", "namespaces \"team\" not found");
  EXPECT_TRUE(Made(gone).ok());
}

TEST(CreateEventTest, OtherRefusalsAreErrors) {
  RefusingCluster forbidden(403, "Forbidden", "User \"x\" cannot create resource \"events\"");
  EXPECT_TRUE(absl::IsPermissionDenied(Made(forbidden)));
  RefusingCluster away(500, "InternalError", "etcdserver: request timed out");
  EXPECT_TRUE(absl::IsUnavailable(Made(away)));
}

}  // namespace
}  // namespace shirabe::crd
