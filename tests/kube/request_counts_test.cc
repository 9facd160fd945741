#include "kube/cluster_config.h"

#include <gtest/gtest.h>

namespace shirabe::kube {
namespace {

std::string Kind(const std::string& method, const std::string& target,
                 const std::string& content_type = "application/json") {
  const RequestKind kind = ClassifyRequest(method, target, content_type);
  return kind.verb + " " + kind.resource;
}

TEST(RequestCountsTest, SpeaksOfRequestsAsKubernetesDoes) {
  EXPECT_EQ(Kind("GET", "/api/v1/namespaces/lab/pods/a"), "get pods");
  EXPECT_EQ(Kind("GET", "/api/v1/namespaces/lab/pods?limit=500"), "list pods");
  EXPECT_EQ(Kind("GET", "/api/v1/pods?labelSelector=a&watch=true"), "watch pods");
  EXPECT_EQ(Kind("GET", "/api/v1/namespaces/lab/pods/a/log?container=main"), "get pods/log");
  EXPECT_EQ(Kind("POST", "/apis/batch/v1/namespaces/lab/jobs"), "create jobs");
  EXPECT_EQ(Kind("DELETE", "/apis/batch/v1/namespaces/lab/jobs/a"), "delete jobs");
  EXPECT_EQ(Kind("PATCH", "/api/v1/namespaces/lab/pods/a", "application/json-patch+json"),
            "patch pods");
  EXPECT_EQ(Kind("PATCH", "/apis/kubeflow.org/v1beta1/namespaces/lab/trials/a/status?force=true",
                 "application/apply-patch+yaml"),
            "apply trials/status");
}

TEST(RequestCountsTest, KnowsWhatHasNoNamespaceOrNoResource) {
  EXPECT_EQ(Kind("GET", "/api/v1/nodes"), "list nodes");
  EXPECT_EQ(Kind("GET", "/api/v1/namespaces"), "list namespaces");
  EXPECT_EQ(Kind("GET", "/api/v1/namespaces/lab"), "get namespaces");
  EXPECT_EQ(Kind("GET", "/k8s/clusters/c-1/api/v1/nodes/a"), "get nodes");
  EXPECT_EQ(Kind("GET", "/version"), "get ");
  EXPECT_EQ(Kind("GET", "/apis/batch/v1"), "get ");
  EXPECT_EQ(Kind("GET", "/api"), "get ");
}

TEST(RequestCountsTest, CountsEachKindByItsAnswer) {
  RequestMetrics counts;
  counts.Add({"get", "pods", "200"});
  counts.Add({"get", "pods", "200"});
  counts.Add({"get", "pods", "none"});
  const auto all = counts.All();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all.at({"get", "pods", "200"}), 2);
  EXPECT_EQ(all.at({"get", "pods", "none"}), 1);
}

}  // namespace
}  // namespace shirabe::kube
