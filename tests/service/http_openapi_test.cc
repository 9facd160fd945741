// The description of the interface: whole, and true. Every reply of the routes is held against its
// shape there, and has no field that the shape does not name.
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "service/http/openapi.h"
#include "tests/service/http_fixture.h"

namespace shirabe::service {
namespace {

using view::Json;

// What JSON Schema says of the few words that our document uses; "" if the value fits.
class Shapes {
 public:
  explicit Shapes(Json document) : document_(std::move(document)) {}

  std::string Misfit(const Json& value, const Json& schema, const std::string& path) const {
    if (schema.contains("$ref")) return Misfit(value, Resolve(schema["$ref"]), path);
    if (schema.contains("const") && value != schema["const"]) return path + " is another constant";
    if (schema.contains("enum") && !Among(value, schema["enum"])) return path + " is no such word";
    if (schema.contains("type") && !IsOfType(value, schema["type"])) {
      return absl::StrCat(path, " is no ", schema["type"].dump(), ": ", value.dump());
    }
    if (value.is_array() && schema.contains("items")) return ItemMisfit(value, schema, path);
    if (value.is_object() && schema.contains("properties")) {
      return FieldMisfit(value, schema, path);
    }
    return "";
  }
  const Json& Resolve(const std::string& reference) const {
    return document_["components"]["schemas"][reference.substr(reference.rfind('/') + 1)];
  }

 private:
  static bool Among(const Json& value, const Json& words) {
    return std::find(words.begin(), words.end(), value) != words.end();
  }
  static bool IsOfType(const Json& value, const Json& type) {
    if (type.is_array()) {
      return std::any_of(type.begin(), type.end(),
                         [&](const Json& one) { return IsOfType(value, one); });
    }
    return (type == "object" && value.is_object()) || (type == "array" && value.is_array()) ||
           (type == "string" && value.is_string()) || (type == "boolean" && value.is_boolean()) ||
           (type == "integer" && value.is_number_integer()) ||
           (type == "number" && value.is_number());
  }
  std::string ItemMisfit(const Json& value, const Json& schema, const std::string& path) const {
    for (const Json& item : value) {
      const std::string misfit = Misfit(item, schema["items"], path + "[]");
      if (!misfit.empty()) return misfit;
    }
    return "";
  }
  std::string FieldMisfit(const Json& value, const Json& schema, const std::string& path) const {
    if (schema.contains("required")) {
      for (const Json& name : schema["required"]) {
        if (!value.contains(name.get<std::string>()))
          return absl::StrCat(path, " has no ", name.dump());
      }
    }
    for (const auto& [name, field] : value.items()) {
      if (!schema["properties"].contains(name))
        return absl::StrCat(path, ".", name, " is not described");
      const std::string misfit = Misfit(field, schema["properties"][name], path + "." + name);
      if (!misfit.empty()) return misfit;
    }
    return "";
  }

  const Json document_;
};

class HttpOpenapiTest : public testing::Test {
 protected:
  HttpOpenapiTest() : document_(BodyOf(http_.Get("/openapi.json", ""))), shapes_(document_) {}

  const Json& OperationOf(const Route& route) const {
    std::string method = route.method;
    for (char& c : method) c = static_cast<char>(c + ('a' - 'A'));
    return document_["paths"][route.path][method];
  }
  static const Route& RouteOf(const std::string& id) {
    for (const Route& route : Routes()) {
      if (route.id == id) return route;
    }
    ADD_FAILURE() << "there is no route " << id;
    return Routes()[0];
  }
  // The reply is one that is described, and fits.
  void Expect(const std::string& id, const std::string& target, const std::string& body = "") {
    const Route& route = RouteOf(id);
    const HttpReply reply = http_.Send(route.method, target, body);
    SCOPED_TRACE(absl::StrCat(id, " ", reply.status, " ", reply.body));
    seen_.insert(id);
    const Json& responses = OperationOf(route)["responses"];
    ASSERT_TRUE(responses.contains(std::to_string(reply.status)));
    const Json& response = responses[std::to_string(reply.status)];
    EXPECT_EQ(reply.type.empty(), !response.contains("content"));
    if (reply.type.empty()) return;
    const std::string type = reply.type.substr(0, reply.type.find(';'));
    ASSERT_TRUE(response["content"].contains(type)) << response.dump();
    if (type != "application/json") return;
    EXPECT_EQ(shapes_.Misfit(BodyOf(reply), response["content"][type]["schema"], ""), "");
  }

  HttpFixture http_;
  const Json document_;
  const Shapes shapes_;
  std::set<std::string> seen_;
};

TEST_F(HttpOpenapiTest, DescribesEveryRouteOnce) {
  std::set<std::string> ids;
  for (const Route& route : Routes()) {
    EXPECT_TRUE(ids.insert(route.id).second) << route.id;
    const Json& operation = OperationOf(route);
    EXPECT_EQ(operation["operationId"], route.id);
    EXPECT_FALSE(route.summary.empty()) << route.id;
    EXPECT_FALSE(route.results.empty()) << route.id;
    for (const Parameter& parameter : PathParameters(route.path)) {
      EXPECT_FALSE(parameter.help.empty()) << parameter.name;
    }
  }
  size_t operations = 0;
  for (const auto& [path, methods] : document_["paths"].items()) operations += methods.size();
  EXPECT_EQ(operations, Routes().size());
}

TEST_F(HttpOpenapiTest, RefersOnlyToWhatIsThere) {
  const std::string text = document_.dump();
  const std::string begin = "\"$ref\":\"";
  for (size_t at = text.find(begin); at != std::string::npos; at = text.find(begin, at + 1)) {
    const size_t from = at + begin.size();
    const std::string reference = text.substr(from, text.find('"', from) - from);
    const Json& schema = shapes_.Resolve(reference);
    EXPECT_TRUE(schema.is_object() && !schema.empty()) << reference;
  }
}

TEST_F(HttpOpenapiTest, EveryReplyFitsItsShape) {
  const std::string all = "/api/v1/experiments";
  const std::string in = "/api/v1/namespaces/a/experiments";
  const std::string one = in + "/one";
  const std::string trial = one + "/trials/1";
  Expect("createExperiment", in, AskedSpec("one"));
  Expect("createExperimentAnywhere", all, AskedSpec("two"));
  Expect("ask", one + ":ask", R"({"caller": "w"})");
  Expect("tell", trial + ":tell", R"({"metrics": {"loss": 1}, "step": 1, "end": "completed"})");
  Expect("listAllExperiments", all);
  Expect("listExperiments", in);
  Expect("getExperiment", one);
  Expect("applyExperiment", one, AskedSpec("one", 7));
  Expect("patchExperiment", one, R"({"spec": {"maxTrialCount": 9}})");
  Expect("listTrials", one + "/trials");
  Expect("getTrial", trial);
  Expect("listAttempts", one + "/attempts");
  Expect("listTrialAttempts", trial + "/attempts");
  Expect("listObservations", trial + "/observations");
  Expect("listCheckpoints", trial + "/checkpoints");
  Expect("listEvents", one + "/events");
  Expect("listTrialEvents", trial + "/events");
  Expect("getLog", trial + "/attempts/1/log");
  Expect("exportTrials", one + "/export");
  Expect("suggest", one + "/suggestions");
  Expect("suggestFor", "/api/v1/suggest", AskedSpec("one"));
  Expect("watch", "/api/v1/watch");
  Expect("watchNamespace", "/api/v1/namespaces/a/watch");
  Expect("watchExperiment", one + "/watch");
  Expect("retryTrial", trial + ":retry");
  for (const char* verb : {"pause", "resume", "stop", "cancel"}) {
    Expect(absl::StrCat(verb, "Experiment"), absl::StrCat(one, ":", verb));
  }
  Expect("scaleExperiment", one + ":scale", R"({"maxTrialCount": 8})");
  Expect("validate", "/api/v1/validate", "kind: Experiment");
  Expect("listAlgorithms", "/api/v1/algorithms");
  Expect("getAlgorithm", "/api/v1/algorithms/tpe");
  Expect("listStoppers", "/api/v1/stoppers");
  Expect("getStopper", "/api/v1/stoppers/medianstop");
  for (const char* id : {"livez", "readyz", "version", "metrics"})
    Expect(id, absl::StrCat("/", id));
  Expect("openapi", "/openapi.json");
  Expect("deleteExperiment", one);
  for (const Route& route : Routes()) EXPECT_TRUE(seen_.contains(route.id)) << route.id;
}

TEST_F(HttpOpenapiTest, EveryErrorFitsItsShape) {
  for (const Route& route : Routes()) {
    if (route.access == Route::Access::kOpen) continue;
    const std::string target = absl::StrReplaceAll(
        route.path,
        {{"{namespace}", "a"}, {"{name}", "none"}, {"{trial}", "1"}, {"{attempt}", "1"}});
    for (const char* token : {"", "0123456789abcdef0123456789abcdef", kAdminToken}) {
      const HttpReply reply = http_.Send(route.method, target, route.request ? "{" : "", token);
      const Json& responses = OperationOf(route)["responses"];
      EXPECT_TRUE(responses.contains(std::to_string(reply.status))) << route.id << reply.status;
      if (reply.status < 400) continue;
      EXPECT_EQ(shapes_.Misfit(BodyOf(reply), shapes_.Resolve("/Error"), ""), "") << reply.body;
    }
  }
}

}  // namespace
}  // namespace shirabe::service
