#include "kube/api_client.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "base/text/json_text.h"
#include "kube/api_errors.h"
#include "kube/impersonation.h"
#include "kube/resource_path.h"
#include "kube/transport.h"

namespace shirabe::kube {
namespace {

using Parameters = std::vector<std::pair<std::string, std::string>>;

constexpr int kListTries = 4;
constexpr absl::Duration kMinWatchTime = absl::Minutes(5);

// "get Job default/digits-1-a1", for messages.
std::string What(const std::string& verb, const Ref& ref) {
  const std::string place = ref.namespace_name.empty() ? "" : ref.namespace_name + "/";
  return absl::StrCat(verb, " ", ref.resource.kind, " ", place, ref.name);
}

std::string What(const std::string& verb, const Query& query) {
  const std::string place = query.namespace_name.empty() ? "" : " in " + query.namespace_name;
  return absl::StrCat(verb, " ", query.resource.plural, place);
}

std::string NumberOrNone(const std::optional<int64_t>& number) {
  return number ? absl::StrCat(*number) : "";
}

bool HasTest(PatchType type, const Json& patch) {
  return type == PatchType::kJson &&
         std::any_of(patch.begin(), patch.end(),
                     [](const Json& operation) { return Text(operation, {"op"}) == "test"; });
}

// Merging twice is merging once, and a `test` refuses what has been done already; other JSON
// patches (an element added to a list) are not tried again once they may have been done.
Idempotency IdempotencyOf(PatchType type, const Json& patch) {
  return type == PatchType::kMerge || HasTest(type, patch) ? Idempotency::kIdempotent
                                                           : Idempotency::kNotIdempotent;
}

// A `test` that fails is answered 422 without a word of what it was; an object that is invalid
// once it is patched is named: `Job.batch "x" is invalid: …`.
bool IsFailedTest(const Status& status) {
  return absl::IsInvalidArgument(status) &&
         Message(status).find("the server rejected our request") != std::string::npos;
}

Json DeleteBody(const DeleteOptions& options) {
  Json body = {
      {"apiVersion", "v1"}, {"kind", "DeleteOptions"}, {"propagationPolicy", options.propagation}};
  if (!options.uid.empty()) body["preconditions"] = {{"uid", options.uid}};
  if (options.grace) body["gracePeriodSeconds"] = absl::ToInt64Seconds(*options.grace);
  return body;
}

// Of an APIResourceList.
std::optional<Resource> FindKind(const Json& list, const std::string& api_version,
                                 const std::string& kind) {
  const Json* resources = FindAt(list, {"resources"});
  if (resources == nullptr || !resources->is_array()) return std::nullopt;
  for (const Json& found : *resources) {
    const std::string plural = Text(found, {"name"});
    // pods/log and the like are parts of one.
    if (Text(found, {"kind"}) != kind || plural.find('/') != std::string::npos) continue;
    const size_t slash = api_version.find('/');
    const bool core = slash == std::string::npos;
    const Json* namespaced = FindAt(found, {"namespaced"});
    return Resource{.group = core ? "" : api_version.substr(0, slash),
                    .version = core ? api_version : api_version.substr(slash + 1),
                    .plural = plural,
                    .kind = kind,
                    .namespaced = namespaced != nullptr && *namespaced == true};
  }
  return std::nullopt;
}

class ApiClient : public Client {
 public:
  ApiClient(std::unique_ptr<Transport> transport, const ClientOptions& options)
      : transport_(std::move(transport)), options_(options) {}

  StatusOr<Json> Get(const Ref& ref) override;
  StatusOr<Json> GetMetadata(const Ref& ref) override;
  StatusOr<Json> List(const Query& query) override;
  StatusOr<std::string> ListEach(const Query& query,
                                 const std::function<void(Json&&)>& sink) override;
  StatusOr<Json> Create(const Resource& resource, const Json& object) override;
  StatusOr<Json> Apply(const Resource& resource, const Json& object, const std::string& manager,
                       const std::string& subresource) override;
  StatusOr<Json> Patch(const Ref& ref, PatchType type, const Json& patch,
                       const std::string& subresource) override;
  Status Delete(const Ref& ref, const DeleteOptions& options) override;
  Status DeleteCollection(const Query& query, const DeleteOptions& options) override;
  Status ReadLog(const Ref& pod, const LogOptions& options,
                 const std::function<bool(std::string_view)>& sink, std::stop_token stop) override;
  Status Watch(const Query& query, const WatchOptions& options,
               const std::function<void(const WatchEvent&)>& sink, std::stop_token stop) override;
  StatusOr<Resource> FindResource(const std::string& api_version, const std::string& kind) override;
  StatusOr<Json> GetPath(const std::string& path) override;

 private:
  // One call that answers JSON. `maybe_applied`, if it is not null, is told even with an error.
  StatusOr<Json> Call(const std::string& what, const HttpRequest& request, Idempotency repeat,
                      bool* maybe_applied = nullptr);
  StatusOr<Json> Page(const Query& query, const std::string& from);

  struct WriteCall {
    std::string verb;  // of RBAC
    Ref ref;
    HttpRequest request;
    Idempotency repeat = Idempotency::kIdempotent;
    bool* maybe_applied = nullptr;
  };
  StatusOr<Json> Write(const std::string& what, WriteCall call);
  bool IsGone(const WriteCall& call);

  const std::unique_ptr<Transport> transport_;
  const ClientOptions options_;
  Mutex mutex_;
  // By version and kind.
  std::map<std::pair<std::string, std::string>, Resource> resources_ ABSL_GUARDED_BY(mutex_);
};

StatusOr<Json> ApiClient::Call(const std::string& what, const HttpRequest& request,
                               Idempotency repeat, bool* maybe_applied) {
  auto reply = transport_->Call(request, repeat);
  RETURN_IF_ERROR(Prefix(what, reply.status()));
  if (maybe_applied != nullptr) *maybe_applied = reply->maybe_applied;
  if (reply->answer.status / 100 != 2) return ToStatus(what, reply->answer);
  Json json = ParseServerJson(reply->answer.body);
  if (!json.is_discarded()) return json;
  return absl::UnavailableError(what + ": the server's answer is not JSON");
}

StatusOr<Json> ApiClient::Get(const Ref& ref) {
  RETURN_IF_ERROR(CheckNames(ref.namespace_name, ref.name));
  const std::string path = PathOf(ref.resource, ref.namespace_name, ref.name, "");
  return Call(What("get", ref), {"GET", path}, Idempotency::kIdempotent);
}

StatusOr<Json> ApiClient::GetMetadata(const Ref& ref) {
  RETURN_IF_ERROR(CheckNames(ref.namespace_name, ref.name));
  HttpRequest request{"GET", PathOf(ref.resource, ref.namespace_name, ref.name, "")};
  request.headers.emplace_back("Accept",
                               "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1");
  ASSIGN_OR_RETURN(const Json object,
                   Call(What("get metadata of", ref), request, Idempotency::kIdempotent));
  return Json{{"metadata", At(object, "metadata")}};
}

StatusOr<Json> ApiClient::GetPath(const std::string& path) {
  return Call("GET " + path, {"GET", path}, Idempotency::kIdempotent);
}

// ---- lists -------------------------------------------------------------------------------------

StatusOr<Json> ApiClient::Page(const Query& query, const std::string& from) {
  const std::string path = WithQuery(PathOf(query.resource, query.namespace_name, "", ""),
                                     {{"labelSelector", query.label_selector},
                                      {"fieldSelector", query.field_selector},
                                      {"limit", absl::StrCat(options_.page)},
                                      {"continue", from}});
  return Call(What("list", query), {"GET", path}, Idempotency::kIdempotent);
}

StatusOr<std::string> ApiClient::ListEach(const Query& query,
                                          const std::function<void(Json&&)>& sink) {
  RETURN_IF_ERROR(CheckNames(query.namespace_name, ""));
  std::string from;
  for (;;) {
    ASSIGN_OR_RETURN(Json page, Page(query, from));
    const std::string version = VersionOf(page);
    const auto items = page.find("items");
    if (version.empty() || items == page.end() || !(items->is_array() || items->is_null())) {
      return absl::UnavailableError(What("list", query) + ": the server's answer is not a list");
    }
    for (Json& item : *items) {
      if (!item.is_object()) continue;
      item["apiVersion"] = query.resource.ApiVersion();
      item["kind"] = query.resource.kind;
      sink(std::move(item));
    }
    from = Text(page, {"metadata", "continue"});
    if (from.empty()) return version;
  }
}

StatusOr<Json> ApiClient::List(const Query& query) {
  for (int tried = 1;; ++tried) {
    Json items = Json::array();
    const auto version = ListEach(query, [&](Json&& item) { items.push_back(std::move(item)); });
    if (absl::IsOutOfRange(version.status()) && tried < kListTries) continue;
    RETURN_IF_ERROR(version.status());
    return Json{{"apiVersion", query.resource.ApiVersion()},
                {"kind", query.resource.kind + "List"},
                {"metadata", {{"resourceVersion", *version}}},
                {"items", std::move(items)}};
  }
}

// ---- writes ------------------------------------------------------------------------------------

// What an account may not do to what is not there is no refusal: with a namespace its bindings go.
bool ApiClient::IsGone(const WriteCall& call) {
  static const Resource kNamespaces{"", "v1", "namespaces", "Namespace", /*namespaced=*/false};
  const Ref its_namespace{kNamespaces, "", call.ref.namespace_name};
  const bool one = call.verb != "create" && call.verb != "deletecollection";
  const auto found = Get(one ? call.ref : its_namespace);
  if (one || !found.ok()) return absl::IsNotFound(found.status());
  return !Text(*found, {"metadata", "deletionTimestamp"}).empty();
}

// Of a group of the account nothing is said: the API server knows those of its namespace.
StatusOr<Json> ApiClient::Write(const std::string& what, WriteCall call) {
  const ActingAs acting{call.ref.namespace_name, options_.act_as};
  const bool lets_go = call.verb == "patch" && call.ref.resource.plural == "pods";
  if (acting.account.empty() || acting.namespace_name.empty() || lets_go) {
    return Call(what, call.request, call.repeat, call.maybe_applied);
  }
  ASSIGN_OR_RETURN(const std::string user, acting.User());
  call.request.headers.emplace_back("Impersonate-User", user);
  auto answer = Call(what, call.request, call.repeat, call.maybe_applied);
  const Status status = ExplainRefusal(answer.status(), {call.verb, call.ref.resource}, acting);
  if (!IsAccountRefused(status)) return answer;
  if (IsGone(call)) return absl::NotFoundError(what + ": it is gone, or its namespace is");
  return status;
}

StatusOr<Json> ApiClient::Create(const Resource& resource, const Json& object) {
  const Ref ref{resource, NamespaceOf(object), NameOf(object)};
  RETURN_IF_ERROR(CheckNames(ref.namespace_name, ref.name));
  // A field that is misspelt is refused, where the server would drop it. Of kinds that are not its
  // own, older definitions need not know all that newer ones do.
  const bool strict = resource.group.empty() || resource.group == "batch";
  const std::string path = WithQuery(PathOf(resource, ref.namespace_name, "", ""),
                                     {{"fieldValidation", strict ? "Strict" : ""}});
  // The server makes up another name each time where there is only a prefix of one.
  const Idempotency repeat =
      ref.name.empty() ? Idempotency::kNotIdempotent : Idempotency::kIdempotent;
  return Write(What("create", ref),
               {"create", ref, {"POST", path, "application/json", Dump(object)}, repeat});
}

StatusOr<Json> ApiClient::Apply(const Resource& resource, const Json& object,
                                const std::string& manager, const std::string& subresource) {
  const Ref ref{resource, NamespaceOf(object), NameOf(object)};
  RETURN_IF_ERROR(CheckNames(ref.namespace_name, ref.name));
  const std::string path = WithQuery(PathOf(resource, ref.namespace_name, ref.name, subresource),
                                     {{"fieldManager", manager}, {"force", "true"}});
  return Write(What("apply", ref),
               {"patch", ref, {"PATCH", path, "application/apply-patch+yaml", Dump(object)}});
}

StatusOr<Json> ApiClient::Patch(const Ref& ref, PatchType type, const Json& patch,
                                const std::string& subresource) {
  RETURN_IF_ERROR(CheckNames(ref.namespace_name, ref.name));
  const std::string path = PathOf(ref.resource, ref.namespace_name, ref.name, subresource);
  const char* content =
      type == PatchType::kMerge ? "application/merge-patch+json" : "application/json-patch+json";
  auto patched =
      Write(What("patch", ref),
            {"patch", ref, {"PATCH", path, content, Dump(patch)}, IdempotencyOf(type, patch)});
  if (!HasTest(type, patch) || !IsFailedTest(patched.status())) return patched;
  return absl::AbortedError(What("patch", ref) + ": it is not what the patch's test says (422)");
}

Status ApiClient::Delete(const Ref& ref, const DeleteOptions& options) {
  RETURN_IF_ERROR(CheckNames(ref.namespace_name, ref.name));
  const std::string path = PathOf(ref.resource, ref.namespace_name, ref.name, "");
  bool maybe_applied = false;
  WriteCall call{"delete", ref, {"DELETE", path, "application/json", Dump(DeleteBody(options))}};
  call.maybe_applied = &maybe_applied;
  const auto answer = Write(What("delete", ref), std::move(call));
  // What we asked for twice was there the first time.
  if (absl::IsNotFound(answer.status()) && maybe_applied) return absl::OkStatus();
  return answer.status();
}

Status ApiClient::DeleteCollection(const Query& query, const DeleteOptions& options) {
  RETURN_IF_ERROR(CheckNames(query.namespace_name, ""));
  const std::string what = What("delete", query);
  if (query.namespace_name.empty() || query.label_selector.empty()) {
    return absl::InvalidArgumentError(what + ": give a namespace and a label selector");
  }
  const std::string path =
      WithQuery(PathOf(query.resource, query.namespace_name, "", ""),
                {{"labelSelector", query.label_selector}, {"fieldSelector", query.field_selector}});
  return Write(what, {"deletecollection",
                      {query.resource, query.namespace_name, ""},
                      {"DELETE", path, "application/json", Dump(DeleteBody(options))}})
      .status();
}

// ---- streams -----------------------------------------------------------------------------------

Status ApiClient::ReadLog(const Ref& pod, const LogOptions& options,
                          const std::function<bool(std::string_view)>& sink, std::stop_token stop) {
  RETURN_IF_ERROR(CheckNames(pod.namespace_name, pod.name));
  const std::string path = WithQuery(PathOf(pod.resource, pod.namespace_name, pod.name, "log"),
                                     {{"container", options.container},
                                      {"follow", options.follow ? "true" : ""},
                                      {"previous", options.previous ? "true" : ""},
                                      {"tailLines", NumberOrNone(options.tail_lines)},
                                      {"limitBytes", NumberOrNone(options.limit_bytes)}});
  const std::string what = What("read the log of", pod);
  const absl::Duration silence = options.follow ? absl::InfiniteDuration() : options_.answer;
  const auto answer = transport_->Stream({"GET", path}, silence, sink, std::move(stop));
  RETURN_IF_ERROR(Prefix(what, answer.status()));
  return answer->status == 200 ? absl::OkStatus() : ToStatus(what, *answer);
}

Status ApiClient::Watch(const Query& query, const WatchOptions& options,
                        const std::function<void(const WatchEvent&)>& sink, std::stop_token stop) {
  RETURN_IF_ERROR(CheckNames(query.namespace_name, ""));
  const std::string path =
      WithQuery(PathOf(query.resource, query.namespace_name, "", ""),
                {{"labelSelector", query.label_selector},
                 {"fieldSelector", query.field_selector},
                 {"watch", "true"},
                 {"allowWatchBookmarks", "true"},
                 {"resourceVersion", options.version},
                 {"timeoutSeconds", absl::StrCat(absl::ToInt64Seconds(kMinWatchTime))}});
  const std::string what = What("watch", query);
  WatchDecoder lines(what, sink);
  const auto answer = transport_->Stream(
      {"GET", path}, options.stall, [&](std::string_view piece) { return lines.Add(piece); },
      std::move(stop));
  RETURN_IF_ERROR(lines.status());
  RETURN_IF_ERROR(Prefix(what, answer.status()));
  return answer->status == 200 ? lines.End() : ToStatus(what, *answer);
}

// ---- discovery ---------------------------------------------------------------------------------

StatusOr<Resource> ApiClient::FindResource(const std::string& api_version,
                                           const std::string& kind) {
  RETURN_IF_ERROR(CheckApiVersion(api_version));
  {
    const MutexLock lock(mutex_);
    const auto known = resources_.find({api_version, kind});
    if (known != resources_.end()) return known->second;
  }
  const bool core = api_version.find('/') == std::string::npos;
  const auto list = GetPath(absl::StrCat(core ? "/api/" : "/apis/", api_version));
  if (!list.ok() && !absl::IsNotFound(list.status())) return list.status();
  auto resource = list.ok() ? FindKind(*list, api_version, kind) : std::nullopt;
  if (!resource) {
    return absl::NotFoundError(absl::StrCat("this cluster has no kind ", kind, " in ", api_version,
                                            ": install the operator that brings its CRD"));
  }
  const MutexLock lock(mutex_);
  return resources_[{api_version, kind}] = *std::move(resource);
}

}  // namespace

StatusOr<std::unique_ptr<Client>> Client::Create(const Config& config, Clock* clock,
                                                 const ClientOptions& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<Transport> transport, Transport::Create(config, clock, options));
  return std::make_unique<ApiClient>(std::move(transport), options);
}

}  // namespace shirabe::kube
