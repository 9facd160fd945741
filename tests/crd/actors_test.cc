// Whose name the records get for an Experiment object, by what the API server knows of it.
#include "crd/object_conversion.h"

#include <gtest/gtest.h>

#include "crd/resource_kinds.h"
#include "tests/crd/fake_cluster.h"

namespace shirabe::crd {
namespace {

using kube::Json;

Json Manager(const char* name, const char* time, const char* what = "f:spec") {
  return {{"manager", name}, {"time", time}, {"fieldsV1", {{what, Json::object()}}}};
}

class ActorsTest : public ::testing::Test {
 protected:
  void Bind() {
    cluster_.Put({"admissionregistration.k8s.io", "v1", "validatingadmissionpolicybindings",
                  "ValidatingAdmissionPolicyBinding", /*namespaced=*/false},
                 {{"metadata", {{"name", "shirabe-actors"}}}});
  }
  // In the cluster as it is; what is asked about, as the cache of a watch keeps it.
  std::string Actor(const char* annotation) {
    Json object = cluster_.Put(Experiments(), {{"metadata", metadata_}});
    object["metadata"].erase("managedFields");
    return ActorOf(cluster_, object, annotation).name();
  }

  FakeCluster cluster_;
  Json metadata_ = {{"namespace", "team"},
                    {"name", "one"},
                    {"annotations", {{kCreatedBy, "alice"}, {kChangedBy, "bob"}}},
                    {"managedFields", Json::array()}};
};

TEST_F(ActorsTest, ANameIsBelievedWhereAPolicyKeepsItHonest) {
  Bind();
  EXPECT_EQ(Actor(kCreatedBy), "alice");
  metadata_["name"] = "two";
  EXPECT_EQ(Actor(kChangedBy), "bob");
}

TEST_F(ActorsTest, WithoutThePolicyItIsNot) { EXPECT_EQ(Actor(kCreatedBy), "an unnamed user"); }

TEST_F(ActorsTest, WithoutANameItIsTheProgramThatWroteTheSpecification) {
  Bind();
  metadata_.erase("annotations");
  metadata_["managedFields"] = {Manager("kubectl", "2026-01-01T00:00:02Z"),
                                Manager("kubectl-create", "2026-01-01T00:00:01Z"),
                                Manager("kubectl-label", "2026-01-01T00:00:03Z", "f:metadata"),
                                Manager("shirabe", "2026-01-01T00:00:04Z", "f:status")};
  EXPECT_EQ(Actor(kCreatedBy), "an unnamed user of kubectl-create");
  metadata_["name"] = "two";
  EXPECT_EQ(Actor(kChangedBy), "an unnamed user of kubectl");
}

}  // namespace
}  // namespace shirabe::crd
