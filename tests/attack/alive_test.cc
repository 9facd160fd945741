// That the server of the other tests works: an attack on one that answers nobody would prove
// nothing. And what is said of a namespace that is not the caller's, at both doors.
#include "tests/attack/attacked_server.h"

namespace shirabe::attack {
namespace {

TEST_F(AttackTest, HonestCallersAreServed) {
  Serve();
  ExpectAlive();
}

// attacks: gRPC shirabe.v1.Shirabe/GetExperiment
// attacks: HTTP GET /api/v1/namespaces/{namespace}/experiments/{name}
TEST_F(AttackTest, GetExperimentOfAnotherNamespaceIsRefused) {
  Serve();
  ASSERT_LT(Create("red", Spec(kHonestSpec, "red", "secret"), kAdminToken), 300);
  v1::ExperimentRef key;
  key.set_namespace_("red");
  key.set_name("secret");
  v1::Experiment experiment;
  EXPECT_EQ(Shirabe()->GetExperiment(As(kBlueToken).get(), key, &experiment).error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(Http("GET /api/v1/namespaces/red/experiments/secret", kBlueToken).status, 403);
  EXPECT_EQ(Http("GET /api/v1/namespaces/red/experiments/secret", "").status, 401);
}

}  // namespace
}  // namespace shirabe::attack
