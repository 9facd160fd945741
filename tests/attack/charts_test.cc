// The doors of the dashboard: columns, timeline, curves, summaries, capacity and updates. Who may
// not see, names that are markup, values that are no numbers, and readers who do not read.
#include <cmath>
#include <cstring>

#include "absl/strings/match.h"
#include "tests/attack/attacked_server.h"
#include "tests/support/eventually.h"

namespace shirabe::attack {
namespace {

using service::RequestText;
using service::Wire;
using service::WireReply;
using testing::HasSubstr;

constexpr char kRed[] = "/api/v1/namespaces/red/experiments/charts";
constexpr char kTrialShaped[] = "0123456789abcdef0123456789abcdef";

class ChartsAttack : public AttackTest {
 protected:
  WireReply Get(const std::string& target, const std::string& token = kRedToken) const {
    return Http(absl::StrCat("GET ", target), token);
  }
  // An experiment of red's with so many trials, each of them ended.
  void Import(int trials) {
    v1::ImportRequest request = ImportOfOneTrial("charts");
    const v1::ImportRequest::Trial first = request.trials(0);
    for (int i = 1; i < trials; ++i) *request.add_trials() = first;
    v1::ImportReply reply;
    const auto status = Shirabe()->ImportExperiment(As(kRedToken).get(), request, &reply);
    ASSERT_TRUE(status.ok()) << status.error_message();
  }
  // Of a reply that is short.
  static nlohmann::json HeadOf(const std::string& bytes) {
    uint32_t length = 0;
    if (bytes.size() < 16) return nullptr;
    std::memcpy(&length, bytes.data() + 8, 4);
    return nlohmann::json::parse(bytes.substr(16, length), nullptr, false);
  }
  static double ValueOf(const std::string& bytes, const std::string& name) {
    const nlohmann::json head = HeadOf(bytes);
    uint32_t length = 0;
    std::memcpy(&length, bytes.data() + 8, 4);
    for (const auto& column : head["columns"]) {
      if (column["name"] != name) continue;
      double value = 0;
      std::memcpy(&value, bytes.data() + 16 + length + 8 * column["offset"].get<size_t>(), 8);
      return value;
    }
    ADD_FAILURE() << "there is no column " << name;
    return 0;
  }
};

// attacks: HTTP GET /api/v1/namespaces/{namespace}/experiments/{name}/columns
// attacks: HTTP GET /api/v1/namespaces/{namespace}/experiments/{name}/timeline
// attacks: HTTP GET /api/v1/namespaces/{namespace}/experiments/{name}/curves
// attacks: HTTP GET /api/v1/namespaces/{namespace}/experiments/{name}/summary
// attacks: HTTP GET /api/v1/namespaces/{namespace}/experiments/{name}/updates
// attacks: HTTP GET /api/v1/namespaces/{namespace}/summaries, HTTP GET /api/v1/summaries
// attacks: HTTP GET /api/v1/namespaces/{namespace}/capacity, HTTP GET /api/v1/capacity
TEST_F(ChartsAttack, NothingIsShownToThoseWithoutARight) {
  Serve();
  Import(3);
  std::vector<std::string> targets = {"/api/v1/namespaces/red/summaries",
                                      "/api/v1/namespaces/red/capacity"};
  for (const char* part : {"columns", "timeline", "curves", "summary", "updates"}) {
    targets.push_back(absl::StrCat(kRed, "/", part));
  }
  for (const std::string& target : targets) {
    EXPECT_EQ(Get(target, "").status, 401) << target;
    EXPECT_EQ(Get(target, "a-token-that-is-not-known").status, 401) << target;
    EXPECT_EQ(Get(target, kTrialShaped).status, 403) << target;
    const WireReply blue = Get(target, kBlueToken);
    EXPECT_EQ(blue.status, 403) << target;
    EXPECT_FALSE(absl::StrContains(blue.body, "lr")) << target;
  }
  EXPECT_EQ(Get(absl::StrCat(kRed, "/columns")).status, 200);
  // Without a namespace each sees what is theirs.
  EXPECT_THAT(Get("/api/v1/summaries", kRedToken).body, HasSubstr("charts"));
  EXPECT_FALSE(absl::StrContains(Get("/api/v1/summaries", kBlueToken).body, "charts"));
  EXPECT_EQ(Get("/api/v1/capacity", kBlueToken).status, 200);
  EXPECT_EQ(Get("/api/v1/capacity", kTrialShaped).status, 403);
  // A tag of what one may not see opens nothing.
  Wire wire(http_port_);
  wire.Send(absl::StrCat("GET ", kRed, "/columns HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ",
                         kBlueToken, "\r\nIf-None-Match: *\r\n\r\n"));
  EXPECT_EQ(wire.ReadReply().status, 403);
}

// attacks: gRPC shirabe.v1.Shirabe/GetTrialColumns, gRPC shirabe.v1.Shirabe/GetAttemptColumns
// attacks: gRPC shirabe.v1.Shirabe/GetCurves, gRPC shirabe.v1.Shirabe/GetSummary
// attacks: gRPC shirabe.v1.Shirabe/ListSummaries, gRPC shirabe.v1.Shirabe/GetCapacity
TEST_F(ChartsAttack, RequestsThatNoOneWouldMakeAreRefused) {
  Serve();
  Import(3);
  const auto stub = Shirabe();
  const auto columns = [&](const std::function<void(v1::ColumnsRequest&)>& spoil) {
    v1::ColumnsRequest request;
    request.set_namespace_("red");
    request.set_experiment("charts");
    spoil(request);
    v1::Columns reply;
    const auto trials = stub->GetTrialColumns(As(kRedToken).get(), request, &reply);
    EXPECT_EQ(stub->GetAttemptColumns(As(kRedToken).get(), request, &reply).error_code(),
              trials.error_code());
    return trials.error_code();
  };
  using grpc::StatusCode;
  EXPECT_EQ(columns([](auto&) {}), StatusCode::OK);
  EXPECT_EQ(columns([](auto& r) { r.set_experiment(""); }), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(columns([](auto& r) { r.set_experiment("../x"); }), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(columns([](auto& r) { r.set_experiment("none"); }), StatusCode::NOT_FOUND);
  EXPECT_EQ(columns([](auto& r) { r.set_namespace_("blue"); }), StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(columns([](auto& r) { r.set_namespace_(""); }), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(columns([](auto& r) { r.set_since(INT64_MAX); }), StatusCode::OUT_OF_RANGE);
  EXPECT_EQ(columns([](auto& r) { r.set_since(INT64_MIN); }), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(columns([](auto& r) { r.set_limit(INT64_MAX); }), StatusCode::OK);
  EXPECT_EQ(columns([](auto& r) { r.set_max_bytes(INT64_MAX); }), StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(columns([](auto& r) { r.mutable_after()->set_trial(INT64_MIN); }), StatusCode::OK);
  EXPECT_EQ(columns([](auto& r) {
              for (int i = 0; i < 100'000; ++i) r.add_fields("trial");
            }),
            StatusCode::INVALID_ARGUMENT);
  v1::CurvesRequest curves;
  curves.set_namespace_("red");
  curves.set_experiment("charts");
  curves.set_pixels(INT32_MAX);
  v1::Curves drawn;
  EXPECT_EQ(stub->GetCurves(As(kRedToken).get(), curves, &drawn).error_code(),
            StatusCode::INVALID_ARGUMENT);
  curves.set_pixels(10);
  curves.set_axis(static_cast<v1::CurveAxis>(77));
  EXPECT_EQ(stub->GetCurves(As(kRedToken).get(), curves, &drawn).error_code(),
            StatusCode::INVALID_ARGUMENT);
  v1::SummaryRequest summary;
  summary.set_namespace_("red");
  v1::Summary reply;
  EXPECT_EQ(stub->GetSummary(As(kRedToken).get(), summary, &reply).error_code(),
            StatusCode::INVALID_ARGUMENT);
  v1::CapacityRequest capacity;
  v1::CapacityReport report;
  EXPECT_EQ(stub->GetCapacity(As(kRedToken).get(), capacity, &report).error_code(),
            StatusCode::PERMISSION_DENIED)
      << "of all namespaces";
  capacity.set_namespace_("red");
  capacity.set_hours(INT32_MAX);
  EXPECT_EQ(stub->GetCapacity(As(kRedToken).get(), capacity, &report).error_code(),
            StatusCode::INVALID_ARGUMENT);
  const auto context = As(kRedToken);
  const auto list = stub->ListSummaries(context.get(), v1::ListSummariesRequest());
  while (list->Read(&reply)) {
  }
  EXPECT_EQ(list->Finish().error_code(), StatusCode::PERMISSION_DENIED);
}

// attacks: HTTP GET /api/v1/namespaces/{namespace}/experiments/{name}/columns
// attacks: HTTP GET /api/v1/namespaces/{namespace}/experiments/{name}/curves
TEST_F(ChartsAttack, NamesAndValuesComeAsTheyAreAndAreNeverMarkup) {
  Serve();
  v1::ImportRequest request = ImportOfOneTrial("charts");
  const std::string word = "<script>alert(1)</script>, \"quoted\"";
  request.set_parameters(nlohmann::json::array({{{"name", "a,\"b<i>"},
                                                 {"parameterType", "categorical"},
                                                 {"feasibleSpace", {{"list", {word, "plain"}}}}}})
                             .dump());
  request.mutable_trials(0)->mutable_values(0)->set_name("a,\"b<i>");
  request.mutable_trials(0)->mutable_values(0)->set_text(word);
  v1::ImportReply reply;
  const auto status = Shirabe()->ImportExperiment(As(kRedToken).get(), request, &reply);
  ASSERT_TRUE(status.ok()) << status.error_message();
  const WireReply columns = Get(absl::StrCat(kRed, "/columns?fields=%22param.a,%22%22b%3Ci%3E%22"));
  ASSERT_EQ(columns.status, 200) << columns.body;
  EXPECT_THAT(columns.head, HasSubstr("X-Content-Type-Options: nosniff"));
  EXPECT_THAT(columns.head, HasSubstr("Content-Type: application/vnd.shirabe.columns"));
  const nlohmann::json head = HeadOf(columns.body);
  EXPECT_EQ(head["columns"][0]["name"], "param.a,\"b<i>");
  EXPECT_EQ(head["columns"][0]["dictionary"][0], word);
  const WireReply refused = Get(absl::StrCat(kRed, "/columns?fields=%3Cimg%20src=x%3E"));
  EXPECT_EQ(refused.status, 400);
  EXPECT_THAT(refused.head, HasSubstr("Content-Type: application/json"));
}

// attacks: HTTP GET /api/v1/namespaces/{namespace}/experiments/{name}/summary
// attacks: HTTP GET /api/v1/namespaces/{namespace}/experiments/{name}/updates
TEST_F(ChartsAttack, ValuesThatAreNoNumbersBreakNoReply) {
  Serve();
  ASSERT_EQ(Create("red", Spec(kAskedSpec, "red", "charts"), kRedToken), 201);
  Wire follower(http_port_);
  follower.Send(RequestText(absl::StrCat("GET ", kRed, "/updates"), kRedToken));
  ASSERT_TRUE(follower.ReadUntil(": following"));
  for (const char* value : {"\"NaN\"", "\"Infinity\"", "\"-Infinity\"", "1e308"}) {
    const WireReply asked =
        Http(absl::StrCat("POST ", kRed, ":ask"), kRedToken, R"({"caller": "w"})");
    ASSERT_EQ(asked.status, 200) << asked.body;
    const auto number = nlohmann::json::parse(asked.body)["trial"]["status"]["shirabe"]["number"];
    const WireReply told =
        Http(absl::StrCat("POST ", kRed, "/trials/", number.get<int>(), ":tell"), kRedToken,
             absl::StrCat(R"({"metrics": {"loss": )", value, R"(}, "end": "completed"})"));
    ASSERT_EQ(told.status, 200) << told.body;
  }
  ASSERT_TRUE(Eventually(
      [&] { return HeadOf(Get(absl::StrCat(kRed, "/columns")).body).value("rows", 0) == 4; }));
  const WireReply columns = Get(absl::StrCat(kRed, "/columns?fields=objective,metric.loss"));
  EXPECT_TRUE(std::isnan(ValueOf(columns.body, "objective"))) << "no number is the best";
  for (const char* part : {"/summary", "/curves", "/curves?scale=log&axis=time", "/timeline"}) {
    EXPECT_EQ(Get(absl::StrCat(kRed, part)).status, 200) << part;
  }
  EXPECT_TRUE(nlohmann::json::accept(Get(absl::StrCat(kRed, "/summary")).body));
  ASSERT_TRUE(follower.ReadUntil("event: update"));
  const std::string& text = follower.data();
  const size_t data = text.find("data: ", text.find("event: update")) + 6;
  ASSERT_TRUE(follower.ReadUntil("\n\n"));
  EXPECT_TRUE(nlohmann::json::accept(text.substr(data, text.find('\n', data) - data)));
  ExpectAlive();
}

// attacks: HTTP GET /api/v1/namespaces/{namespace}/experiments/{name}/columns
TEST_F(ChartsAttack, ReadersWhoDoNotReadHoldABoundedNumberOfBytes) {
  Serve();
  Import(20'000);
  // About 2.5 MB each.
  std::vector<std::unique_ptr<Wire>> readers;
  for (int i = 0; i < 300; ++i) {
    readers.push_back(std::make_unique<Wire>(http_port_, 4096));
    readers.back()->Send(RequestText(absl::StrCat("GET ", kRed, "/columns"), kRedToken));
  }
  int refused = 0;
  int sent = 0;
  for (auto& reader : readers) {
    if (!reader->ReadUntil("\r\n")) continue;
    refused += absl::StrContains(reader->data(), " 429 ") ? 1 : 0;
    sent += absl::StrContains(reader->data(), " 200 ") ? 1 : 0;
  }
  EXPECT_GT(sent, 20);
  EXPECT_GT(refused, 50) << sent << " were sent";
  // Others are not held up by it.
  EXPECT_EQ(Get("/api/v1/summaries", kBlueToken).status, 200);
  EXPECT_EQ(Get(absl::StrCat(kRed, "/summary")).status, 200);
  readers.clear();
  EXPECT_TRUE(Eventually([&] {
    Wire wire(http_port_);
    wire.Send(RequestText(absl::StrCat("GET ", kRed, "/columns"), kRedToken));
    return wire.ReadUntil("\r\n0\r\n\r\n");
  }));
  ExpectAlive();
}

// attacks: HTTP GET /api/v1/namespaces/{namespace}/experiments/{name}/updates
TEST_F(ChartsAttack, FollowersHaveABoundAndThoseWhoDoNotReadHoldUpNobody) {
  Serve();
  ASSERT_EQ(Create("red", Spec(kAskedSpec, "red", "charts"), kRedToken), 201);
  std::vector<std::unique_ptr<Wire>> followers;
  for (int i = 0; i < 530; ++i) {
    followers.push_back(std::make_unique<Wire>(http_port_, 4096));
    followers.back()->Send(RequestText(absl::StrCat("GET ", kRed, "/updates"), kRedToken));
  }
  int refused = 0;
  for (auto& follower : followers) {
    ASSERT_TRUE(follower->ReadUntil("\r\n"));
    refused += absl::StrContains(follower->data(), " 429 ") ? 1 : 0;
  }
  EXPECT_EQ(refused, 530 - 512);
  // From now on nobody reads, and much happens.
  for (int i = 0; i < 30; ++i) {
    const WireReply asked =
        Http(absl::StrCat("POST ", kRed, ":ask"), kRedToken, R"({"caller": "w"})");
    ASSERT_EQ(asked.status, 200) << asked.body;
    const auto number = nlohmann::json::parse(asked.body)["trial"]["status"]["shirabe"]["number"];
    ASSERT_EQ(Http(absl::StrCat("POST ", kRed, "/trials/", number.get<int>(), ":tell"), kRedToken,
                   R"({"metrics": {"loss": 1}, "end": "completed"})")
                  .status,
              200);
  }
  EXPECT_EQ(Get(absl::StrCat(kRed, "/summary")).status, 200);
  ExpectAlive();
}

}  // namespace
}  // namespace shirabe::attack
