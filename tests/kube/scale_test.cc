// Ten thousand pods, and a thousand creates: bounds that are far from what is measured, and the
// figures on stdout.
#include <gtest/gtest.h>
#include <malloc.h>

#include <cstdio>

#include "absl/strings/str_cat.h"
#include "kube/watch_cache.h"
#include "tests/kube/fake_api_server.h"

namespace shirabe::kube {
namespace {

constexpr int kAll = 10'000;
constexpr int kPage = 500;
const Resource kScalePods{"", "v1", "pods", "Pod"};

// As a cluster has them: 4 kB, of which a third are managed fields and a third is spec.
Json PodOf(int number) {
  Json fields = Json::object();
  for (int i = 0; i < 60; ++i) fields[absl::StrCat("f:field-number-", i)] = Json::object();
  Json environment = Json::array();
  for (int i = 0; i < 30; ++i) {
    environment.push_back({{"name", absl::StrCat("SHIRABE_PARAM_", i)}, {"value", "0.00123456"}});
  }
  const Json state = {{"terminated",
                       {{"exitCode", 0},
                        {"reason", "Completed"},
                        {"startedAt", "2026-11-21T08:30:00Z"},
                        {"finishedAt", "2026-11-21T08:40:00Z"}}}};
  Json statuses = Json::array();
  for (const char* name : {"shirabe-init", "shirabe-sidecar", "main"}) {
    statuses.push_back({{"name", name}, {"ready", false}, {"restartCount", 0}, {"state", state}});
  }
  return {{"metadata",
           {{"namespace", "ns"},
            {"name", absl::StrCat("digits-", number, "-a1-abcde")},
            {"uid", absl::StrCat("00000000-0000-0000-0000-", 100'000'000'000 + number)},
            {"resourceVersion", absl::StrCat(1000 + number)},
            {"labels",
             {{"katib.kubeflow.org/experiment", "digits"},
              {"katib.kubeflow.org/trial", absl::StrCat("digits-", number)},
              {"shirabe.dev/attempt", "1"}}},
            {"managedFields", Json::array({{{"manager", "kubelet"}, {"fieldsV1", fields}}})}}},
          {"spec",
           {{"nodeName", "node-0"},
            {"containers", Json::array({{{"name", "main"}, {"env", environment}}})}}},
          {"status", {{"phase", "Succeeded"}, {"containerStatuses", statuses}}}};
}

void TrimSpec(Json& pod) {
  const std::string node = Text(pod, {"spec", "nodeName"});
  pod["spec"] = {{"nodeName", node}};
}

// The pages, rendered before anything is measured.
std::vector<std::string> Pages() {
  std::vector<std::string> pages;
  for (int first = 0; first < kAll; first += kPage) {
    Json page = {{"metadata", {{"resourceVersion", "20000"}}}, {"items", Json::array()}};
    for (int i = first; i < first + kPage; ++i) page["items"].push_back(PodOf(i));
    if (first + kPage < kAll) page["metadata"]["continue"] = absl::StrCat(pages.size() + 1);
    pages.push_back(Dump(page));
  }
  return pages;
}

// What is allocated now, of all threads.
size_t HeapBytes() {
  const auto info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

double Seconds(absl::Duration time) { return absl::ToDoubleSeconds(time); }

class ScaleTest : public testing::Test {
 protected:
  ScaleTest() : server_([this](FakeExchange& exchange) { Handle(exchange); }) {
    auto client = Client::Create(server_.config(), RealClock());
    EXPECT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
  }
  void Handle(FakeExchange& exchange) {
    const FakeRequest& request = exchange.request();
    if (request.method == "POST") return exchange.Reply(201, request.body);
    if (request.query.contains("watch")) {
      exchange.KeepSilent(absl::Minutes(5));
      return;
    }
    const auto from = request.query.find("continue");
    exchange.Reply(200, pages_[from == request.query.end() ? 0 : std::stoul(from->second)]);
  }

  const std::vector<std::string> pages_ = Pages();
  FakeApiServer server_;
  std::unique_ptr<Client> client_;
};

TEST_F(ScaleTest, TenThousandPods) {
  const size_t before = HeapBytes();
  const absl::Duration begun = RealClock()->Monotonic();
  const auto cache = WatchCache::Start(
      {.client = client_.get(), .clock = RealClock(), .query = {kScalePods}, .trim = TrimSpec});
  ASSERT_EQ(cache->AwaitSynced(absl::Minutes(2)), absl::OkStatus());
  const absl::Duration listed = RealClock()->Monotonic() - begun;
  const size_t bytes = HeapBytes() - before;
  ASSERT_EQ(cache->size(), static_cast<size_t>(kAll));
  const absl::Duration read = RealClock()->Monotonic();
  EXPECT_EQ(cache->All().size(), static_cast<size_t>(kAll));
  std::printf("10,000 pods of %zu bytes: listed in %.2f s, kept in %.1f MiB, read in %.2f s\n",
              Dump(PodOf(0)).size(), Seconds(listed), static_cast<double>(bytes) / (1 << 20),
              Seconds(RealClock()->Monotonic() - read));
  EXPECT_LT(bytes, size_t{80} << 20);
}

TEST_F(ScaleTest, ThousandCreates) {
  const absl::Duration begun = RealClock()->Monotonic();
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(client_->Create(kScalePods, PodOf(i)).ok());
  const absl::Duration took = RealClock()->Monotonic() - begun;
  std::printf("1,000 creates one after another: %.0f a second\n", 1000 / Seconds(took));
  EXPECT_EQ(server_.connections(), 1);
}

}  // namespace
}  // namespace shirabe::kube
