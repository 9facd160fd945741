#include "service/common/guarded_client.h"

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/store_reads.h"
#include "experiment/conditions.h"
#include "experiment/spec/local_support.h"
#include "experiment/spec/parse_spec.h"
#include "schedule/parse_schedule.h"
#include "service/common/authorization.h"

namespace shirabe::service {
namespace {

using client::Method;
using client::Sink;
using google::protobuf::FieldDescriptor;
using Proto = google::protobuf::Message;

constexpr int kMaxSuggested = 10'000;

// With defaults; kInvalidArgument, with its mistakes, if it is no valid specification.
StatusOr<v1::Experiment> Valid(v1::Experiment experiment) {
  experiment::SetDefaults(experiment);
  RETURN_IF_ERROR(experiment::JoinErrors(experiment::Validate(experiment)));
  return experiment;
}

// Also where it is valid, but its trials cannot run here.
StatusOr<v1::Experiment> Admit(const v1::Experiment& wanted, const GuardOptions& rights) {
  ASSIGN_OR_RETURN(v1::Experiment experiment, Valid(wanted));
  RETURN_IF_ERROR(rights.in_cluster ? experiment::CheckVariants(experiment)
                                    : experiment::CheckRunnable(experiment));
  return experiment;
}

// The part of a request that says what it is about: the first message with a field `namespace`, the
// request itself or within it; null if there is none.
const Proto* FindReference(const Proto& message, int depth = 2) {
  const auto& type = *message.GetDescriptor();
  if (type.FindFieldByName("namespace") != nullptr) return &message;
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    const bool nested = field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE && depth > 0;
    if (field.is_repeated() || !nested) continue;
    const Proto* found =
        FindReference(message.GetReflection()->GetMessage(message, &field), depth - 1);
    if (found != nullptr) return found;
  }
  return nullptr;
}

// "" where the message has no such text.
std::string TextOf(const Proto& message, const char* name) {
  const FieldDescriptor* field = message.GetDescriptor()->FindFieldByName(name);
  const bool text = field != nullptr && field->cpp_type() == FieldDescriptor::CPPTYPE_STRING;
  return text ? message.GetReflection()->GetString(message, field) : "";
}

int64_t NumberOf(const Proto& message, const char* name) {
  const FieldDescriptor* field = message.GetDescriptor()->FindFieldByName(name);
  if (field == nullptr) return 0;
  const auto& reflection = *message.GetReflection();
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_INT64) {
    return reflection.GetInt64(message, field);
  }
  const bool number = field->cpp_type() == FieldDescriptor::CPPTYPE_INT32;
  return number ? reflection.GetInt32(message, field) : 0;
}

// What a request is about; without a name that of all experiments of a namespace, or of all.
TrialKey KeyOfRequest(const Proto& request) {
  const Proto* reference = FindReference(request);
  if (reference == nullptr) return {};
  std::string name = TextOf(*reference, "experiment");
  if (name.empty()) name = TextOf(*reference, "name");
  return {{TextOf(*reference, "namespace"), name}, NumberOf(*reference, "number")};
}

// What is asked of a namespace, or of all, and not of one experiment.
bool IsOfAll(const Method& method) {
  static const std::set<std::string> names = {"ListExperiments", "ListSummaries", "ListSchedules",
                                              "GetCapacity", "GetRights"};
  return names.contains(method.name());
}

// kInvalidArgument for a key that no record can have.
Status CheckKeys(const Method& method, const Proto& request, const TrialKey& key) {
  const Proto* reference = FindReference(request);
  if (reference == nullptr) return absl::OkStatus();
  // Checked as a whole.
  if (method.name() == "SubmitExperiment" || method.name() == "SubmitSchedule") {
    return absl::OkStatus();
  }
  if (IsOfAll(method) && key.experiment.name.empty()) {
    return key.experiment.ns.empty() ? absl::OkStatus() : ValidateNamespace(key.experiment.ns);
  }
  RETURN_IF_ERROR(ValidateKey(key.experiment));
  if (reference->GetDescriptor() == v1::TrialRef::descriptor()) RETURN_IF_ERROR(ValidateKey(key));
  // 0 = of all trials; the current attempt.
  TrialKey trial = key;
  if (const int64_t number = NumberOf(request, "trial"); number != 0) trial.number = number;
  if (trial.number != 0) RETURN_IF_ERROR(ValidateKey(trial));
  const auto attempt = static_cast<int32_t>(NumberOf(request, "attempt"));
  return attempt == 0 ? absl::OkStatus() : ValidateKey(AttemptKey{trial, attempt});
}

class GuardedClient : public client::Client {
 public:
  GuardedClient(client::LocalClient& client, Principal principal, GuardOptions rights)
      : client_(client), principal_(std::move(principal)), guard_options_(rights) {}

  Status Call(const Method& method, const Proto& request, const Sink& sink) override {
    RETURN_IF_ERROR(Check(method, request));
    static const std::map<std::string, Special> special = {
        {"Suggest", &GuardedClient::Suggest},
        {"SubmitExperiment", &GuardedClient::Submit},
        {"ImportExperiment", &GuardedClient::Import},
        {"SendIntent", &GuardedClient::SendIntent},
        {"DeleteExperiment", &GuardedClient::Delete},
        {"ListChanges", &GuardedClient::ListChanges},
        {"GetRights", &GuardedClient::GetRights},
        {"Tell", &GuardedClient::Tell},
        {"SubmitSchedule", &GuardedClient::SubmitSchedule},
        {"SteerSchedule", &GuardedClient::SteerSchedule},
        {"DeleteSchedule", &GuardedClient::DeleteSchedule},
    };
    const auto found = special.find(method.name());
    if (found != special.end()) return (this->*found->second)(request, sink);
    const auto call = [&] { return client_.Call(method, request, sink); };
    // What fits a model costs as much as a suggestion.
    static const std::set<std::string> modelled = {"GetAblation", "GetImportance",
                                                   "GetPartialDependence"};
    return modelled.count(method.name()) > 0 ? InTurn(request, call) : call();
  }
  std::string LogLocation(const AttemptKey& key) override { return client_.LogLocation(key); }
  Status DeleteExperiment(const v1::DeleteRequest& request, const client::Wait& wait) override {
    RETURN_IF_ERROR(Check(client::MethodOf("DeleteExperiment"), request));
    return client_.DeleteExperiment(AsCaller(request), wait);
  }

 private:
  // What is more than the rights to the method, or done in the name of the caller.
  using Special = Status (GuardedClient::*)(const Proto& request, const Sink& sink);

  Status Check(const Method& method, const Proto& request) const {
    const TrialKey key = KeyOfRequest(request);
    RETURN_IF_ERROR(CheckKeys(method, request, key));
    RETURN_IF_ERROR(CheckAccess(principal_, RightsTo(method, request), key.experiment.ns));
    // A trial may where it is its own.
    if (principal_.role != Principal::Role::kTrial) return absl::OkStatus();
    return client_.CheckToken(key, principal_.token);
  }
  // An intent to delete is a deletion.
  static v1::Rights RightsTo(const Method& method, const Proto& request) {
    const bool intent = request.GetDescriptor() == v1::Intent::descriptor();
    const bool deletes =
        intent && static_cast<const v1::Intent&>(request).verb() == v1::Intent::DELETE;
    const Method& judged = deletes ? client::MethodOf("DeleteExperiment") : method;
    return judged.options().GetExtension(v1::rights);
  }
  template <class Request>
  Request AsCaller(const Request& request) const {
    Request own = request;
    *own.mutable_actor() = principal_.Actor();
    return own;
  }

  Status Suggest(const Proto& message, const Sink& sink) {
    const auto& request = static_cast<const v1::SuggestRequest&>(message);
    if (request.count() < 0 || request.count() > kMaxSuggested) {
      return absl::InvalidArgumentError(
          absl::StrCat("count must be from 0 to ", kMaxSuggested, ", not ", request.count()));
    }
    RETURN_IF_ERROR(CheckLearnsFrom(request.experiment()));
    // Of a stored one only the name counts.
    v1::SuggestRequest asked = request;
    const Status stored = client_.GetExperiment(experiment::KeyOf(asked.experiment())).status();
    if (absl::IsNotFound(stored)) {
      ASSIGN_OR_RETURN(*asked.mutable_experiment(), Valid(request.experiment()));
    } else {
      RETURN_IF_ERROR(stored);
    }
    return InTurn(asked.experiment(),
                  [&] { return client_.Call(client::MethodOf("Suggest"), asked, sink); });
  }

  // Waits for a turn, if there are any, with what the caller's request holds.
  Status InTurn(const Proto& held, const std::function<Status()>& work) {
    if (guard_options_.turns == nullptr) return work();
    return guard_options_.turns->Run(principal_.name, held.ByteSizeLong(), work);
  }

  Status Submit(const Proto& message, const Sink& sink) {
    v1::SubmitRequest request = static_cast<const v1::SubmitRequest&>(message);
    const v1::Experiment& experiment = request.experiment();
    const ExperimentKey key = experiment::KeyOf(experiment);
    RETURN_IF_ERROR(CheckLearnsFrom(experiment));
    // Of one that is there it changes the counts.
    if (client_.GetExperiment(key).ok()) {
      RETURN_IF_ERROR(principal_.CheckPermission(v1::Rights::CHANGE, key.ns));
    }
    if (!guard_options_.in_cluster && !experiment.spec().shirabe().ask_and_tell()) {
      RETURN_IF_ERROR(principal_.CheckAdmin(
          "an experiment whose trials are processes of the server's own machine"));
    }
    ASSIGN_OR_RETURN(*request.mutable_experiment(), Admit(experiment, guard_options_));
    *request.mutable_experiment()->mutable_status()->mutable_shirabe()->mutable_created_by() =
        principal_.Actor();
    return client_.Call(client::MethodOf("SubmitExperiment"), request, sink);
  }

  Status Import(const Proto& message, const Sink& sink) {
    return client_.Call(client::MethodOf("ImportExperiment"),
                        AsCaller(static_cast<const v1::ImportRequest&>(message)), sink);
  }

  Status SendIntent(const Proto& message, const Sink& sink) {
    const auto& intent = static_cast<const v1::Intent&>(message);
    if (intent.verb() == v1::Intent::ASK) {
      return absl::InvalidArgumentError("verb: ASK is a call of its own, Ask");
    }
    return client_.Call(client::MethodOf("SendIntent"), AsCaller(intent), sink);
  }

  Status Delete(const Proto& message, const Sink& sink) {
    return client_.Call(client::MethodOf("DeleteExperiment"),
                        AsCaller(static_cast<const v1::DeleteRequest&>(message)), sink);
  }

  // What it starts is an experiment of the caller's.
  Status SubmitSchedule(const Proto& message, const Sink& sink) {
    v1::SubmitScheduleRequest request = static_cast<const v1::SubmitScheduleRequest&>(message);
    v1::ScheduledExperiment& schedule = *request.mutable_schedule();
    schedule::SetDefaults(schedule);
    const ExperimentKey key = schedule::KeyOf(schedule);
    const v1::Experiment made = schedule::ExperimentOf(schedule, key.name, absl::UnixEpoch(), "");
    RETURN_IF_ERROR(CheckLearnsFrom(made));
    v1::ExperimentRef reference;
    reference.set_namespace_(key.ns);
    reference.set_name(key.name);
    if (client_.Get<v1::ScheduledExperiment>("GetSchedule", reference).ok()) {
      RETURN_IF_ERROR(principal_.CheckPermission(v1::Rights::CHANGE, key.ns));
    }
    if (!guard_options_.in_cluster && !made.spec().shirabe().ask_and_tell()) {
      RETURN_IF_ERROR(principal_.CheckAdmin(
          "a schedule of experiments whose trials are processes of the server's own machine"));
    }
    *schedule.mutable_status()->mutable_created_by() = principal_.Actor();
    // Its mistakes are those of the records; what is right may still not run here.
    if (!experiment::HasErrors(schedule::Validate(schedule))) {
      RETURN_IF_ERROR(guard_options_.in_cluster ? experiment::CheckVariants(made)
                                                : experiment::CheckRunnable(made));
    }
    return client_.Call(client::MethodOf("SubmitSchedule"), request, sink);
  }

  // To start an experiment takes the right to make one.
  Status SteerSchedule(const Proto& message, const Sink& sink) {
    const auto& request = static_cast<const v1::SteerScheduleRequest&>(message);
    if (request.action() == v1::SteerScheduleRequest::START) {
      RETURN_IF_ERROR(
          principal_.CheckPermission(v1::Rights::CREATE, request.schedule().namespace_()));
    }
    return client_.Call(client::MethodOf("SteerSchedule"), AsCaller(request), sink);
  }

  Status DeleteSchedule(const Proto& message, const Sink& sink) {
    return client_.Call(client::MethodOf("DeleteSchedule"),
                        AsCaller(static_cast<const v1::DeleteScheduleRequest&>(message)), sink);
  }

  // Of what the caller may see.
  Status ListChanges(const Proto& request, const Sink& sink) {
    return client_.Call(client::MethodOf("ListChanges"), request, [&](Proto& change) -> Status {
      ASSIGN_OR_RETURN(
          const bool sees,
          principal_.CanSee(static_cast<const v1::ChangeRecord&>(change).namespace_()));
      return sees ? sink(change) : absl::OkStatus();
    });
  }

  // Of the caller here, and of this process where it is itself a caller of a server (shirabe ui).
  Status GetRights(const Proto& message, const Sink& sink) {
    v1::RightsRequest request = static_cast<const v1::RightsRequest&>(message);
    if (request.namespace_().empty()) request.set_namespace_(principal_.ns);
    auto behind = client_.Get<v1::CallerRights>("GetRights", request);
    // A server of an older version does not say; it still refuses what it does not allow.
    if (absl::IsUnimplemented(behind.status())) behind = client::EveryRight(request.namespace_());
    ASSIGN_OR_RETURN(v1::CallerRights rights, std::move(behind));
    const auto may = [&](Permission permission) {
      return principal_.CheckPermission(permission, rights.namespace_()).ok();
    };
    if (rights.name().empty()) rights.set_name(principal_.Actor().name());
    rights.set_read(rights.read() && may(v1::Rights::READ));
    rights.set_create(rights.create() && may(v1::Rights::CREATE));
    rights.set_change(rights.change() && may(v1::Rights::CHANGE));
    rights.set_delete_(rights.delete_() && may(v1::Rights::DELETE));
    return sink(rights);
  }

  // Whether a trial's own token is that of the current attempt is seen where the report is
  // committed. To ask for another trial by it takes the rights to ask.
  Status Tell(const Proto& message, const Sink& sink) {
    const auto& report = static_cast<const v1::TellRequest&>(message);
    const Method& method = client::MethodOf("Tell");
    if (!report.next_for().empty()) {
      RETURN_IF_ERROR(CheckAccess(principal_, RightsTo(client::MethodOf("Ask"), report),
                                  report.trial().namespace_()));
    }
    if (principal_.role != Principal::Role::kTrial) return client_.Call(method, report, sink);
    v1::TellRequest signed_report = report;
    signed_report.set_token(principal_.token);
    return client_.Call(method, signed_report, sink);
  }

  // Experiments to learn from are of the same namespace, unless their names say another.
  Status CheckLearnsFrom(const v1::Experiment& experiment) const {
    for (const std::string& name : experiment.spec().shirabe().warm_start().experiments()) {
      const size_t slash = name.find('/');
      if (slash == std::string::npos) continue;
      RETURN_IF_ERROR(principal_.CheckRead(name.substr(0, slash)));
    }
    return absl::OkStatus();
  }

  client::LocalClient& client_;
  const Principal principal_;
  const GuardOptions guard_options_;
};

}  // namespace

std::unique_ptr<client::Client> Guard(client::LocalClient& client, Principal principal,
                                      GuardOptions rights) {
  return std::make_unique<GuardedClient>(client, std::move(principal), rights);
}

}  // namespace shirabe::service
