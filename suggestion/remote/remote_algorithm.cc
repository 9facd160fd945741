#include "suggestion/remote/remote_algorithm.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/mutex.h"
#include "base/printable.h"
#include "base/sorting.h"
#include "proto/katib/v1beta1/api.grpc.pb.h"
#include "suggestion/remote/katib_trials.h"
#include "suggestion/unvisited_points.h"

namespace shirabe::suggestion {
namespace {

constexpr int kMaxResponseBytes = 32 << 20;  // bytes
constexpr int kMaxLabels = 64;
constexpr size_t kMaxLabel = 1024;              // characters of a name or a value
constexpr size_t kMaxMessageBytes = 500;        // of the service's message
constexpr int kMaxAssigned = 64;                // texts of an architecture
constexpr size_t kMaxAssignedBytes = 64 << 10;  // of one
constexpr int kReconnectMs = 200;               // the channel's own pauses, so that ours decide
constexpr int kMaxReconnectMs = 5000;
constexpr char kPbtParent[] = "pbt.suggestion.katib.kubeflow.org/parent";
constexpr char kMemo[] = "katib 1\n";

using Answer = katib::GetSuggestionsReply;

std::string Words(const std::string& text) {
  return Printable(text.substr(0, kMaxMessageBytes)) + (text.size() > kMaxMessageBytes ? "…" : "");
}

std::shared_ptr<grpc::Channel> Connect(const std::string& endpoint) {  // shared: as gRPC has it
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxResponseBytes);
  arguments.SetMaxSendMessageSize(-1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kReconnectMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kMaxReconnectMs);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);  // it is asked directly, or not at all
  return grpc::CreateCustomChannel(endpoint, grpc::InsecureChannelCredentials(), arguments);
}

// What went wrong with a call, in words for a user who looks at the experiment.
Status AsStatus(const grpc::Status& status, absl::Duration deadline) {
  const std::string said = Words(status.error_message());
  switch (status.error_code()) {
    case grpc::StatusCode::OK: return absl::OkStatus();
    case grpc::StatusCode::CANCELLED: return absl::CancelledError("the call was cancelled");
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return absl::DeadlineExceededError("no answer within " + absl::FormatDuration(deadline));
    case grpc::StatusCode::UNAVAILABLE: return absl::UnavailableError("cannot be reached: " + said);
    case grpc::StatusCode::UNIMPLEMENTED:
      return absl::UnimplementedError(
          "the endpoint does not serve Suggestion of package api.v1.beta1: " + said);
    case grpc::StatusCode::INVALID_ARGUMENT:
      return absl::InvalidArgumentError("it refuses the experiment: " + said);
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      return absl::ResourceExhaustedError("a message is too large, or it is too busy: " + said);
    default: return absl::UnknownError("it failed: " + said);
  }
}

class RemoteAlgorithm : public Algorithm {
 public:
  RemoteAlgorithm(const v1::Experiment& experiment, const Space& space,
                  const RemoteOptions& options)
      : experiment_(experiment),
        wire_(ToKatib(experiment)),
        space_(space),
        options_(options),
        who_(absl::StrCat("algorithm ", experiment.spec().algorithm().algorithm_name(), " at ",
                          options.endpoint)),
        stub_(katib::Suggestion::NewStub(Connect(options.endpoint))) {}

  StatusOr<Proposal> Propose(const History& history, int count, const Rng&) override {
    RETURN_IF_ERROR(Prefix(who_, Validate()));
    Answer answer;
    std::string outcome;
    RETURN_IF_ERROR(Prefix(who_, Ask(RequestFor(history, count), answer, outcome)));
    auto proposal = Read(answer, history, count, outcome == "exhausted");
    if (!proposal.ok()) return Prefix(who_, proposal.status());
    proposal->algorithm = who_;
    return proposal;
  }

  void Cancel() override {
    const MutexLock lock(mutex_);
    cancelled_ = true;
    if (context_ != nullptr) context_->TryCancel();
  }

 private:
  // Runs `call` with a context that Cancel knows; once more if the connection broke.
  template <class Call>
  Status Run(Call call) {
    grpc::Status status;
    for (int attempt = 0; attempt < 2; ++attempt) {
      grpc::ClientContext context;
      context.set_deadline(
          gpr_time_from_micros(absl::ToInt64Microseconds(options_.deadline), GPR_TIMESPAN));
      if (!Enter(&context)) return absl::CancelledError("the call was cancelled");
      status = call(&context);
      Enter(nullptr);
      if (status.error_code() != grpc::StatusCode::UNAVAILABLE) break;
    }
    return AsStatus(status, options_.deadline);
  }

  // False, and nothing is entered, once it was cancelled.
  bool Enter(grpc::ClientContext* context) {
    const MutexLock lock(mutex_);
    context_ = cancelled_ ? nullptr : context;
    return !cancelled_;
  }

  // Katib's controller asks it once, before the first suggestion; services may not have it.
  Status Validate() {
    if (valid_) return absl::OkStatus();
    katib::ValidateAlgorithmSettingsRequest request;
    *request.mutable_experiment() = wire_;
    const Status status = Run([this, &request](grpc::ClientContext* context) {
      katib::ValidateAlgorithmSettingsReply reply;
      return stub_->ValidateAlgorithmSettings(context, request, &reply);
    });
    valid_ = status.ok() || absl::IsUnimplemented(status);
    return valid_ ? absl::OkStatus() : status;
  }

  katib::GetSuggestionsRequest RequestFor(const History& history, int count) const {
    katib::GetSuggestionsRequest request;
    *request.mutable_experiment() = wire_;
    katib::AlgorithmSpec kept;
    const bool has_memo = absl::StartsWith(history.memo(), kMemo) &&
                          kept.ParseFromString(history.memo().substr(sizeof kMemo - 1));
    if (has_memo) {
      MergeSettings(kept, *request.mutable_experiment()->mutable_spec()->mutable_algorithm());
    }
    *request.mutable_trials() = FormatTrials(experiment_, history);
    for (katib::Trial& trial : *request.mutable_trials()) AssignTexts(*trial.mutable_spec());
    request.set_current_request_number(count);
    request.set_total_request_number(static_cast<int>(history.next_ordinal()) + count);
    return request;
  }

  // The reverse of ReadArchitecture.
  static void AssignTexts(katib::TrialSpec& spec) {
    std::map<std::string, std::string> labels(spec.labels().begin(), spec.labels().end());
    for (const auto& [name, value] : labels) {
      if (!absl::StartsWith(name, kAssignedLabel)) continue;
      auto& assigned = *spec.mutable_parameter_assignments()->add_assignments();
      assigned.set_name(name.substr(sizeof kAssignedLabel - 1));
      assigned.set_value(value);
      spec.mutable_labels()->erase(name);
    }
  }

  static void MergeSettings(const katib::AlgorithmSpec& from, katib::AlgorithmSpec& to) {
    for (const katib::AlgorithmSetting& setting : from.algorithm_settings()) {
      auto& all = *to.mutable_algorithm_settings();
      const auto same = std::find_if(all.begin(), all.end(), [&setting](const auto& one) {
        return one.name() == setting.name();
      });
      *(same == all.end() ? all.Add() : &*same) = setting;
    }
  }

  Status Ask(const katib::GetSuggestionsRequest& request, Answer& answer, std::string& outcome) {
    return Run([&](grpc::ClientContext* context) {
      answer.Clear();
      const grpc::Status status = stub_->GetSuggestions(context, request, &answer);
      const auto& trailing = context->GetServerTrailingMetadata();
      const auto found = trailing.find("shirabe-outcome");  // from a service of ours
      if (found != trailing.end()) outcome.assign(found->second.data(), found->second.size());
      return status;
    });
  }

  StatusOr<Proposal> Read(const Answer& answer, const History& history, int count,
                          bool exhausted) const {
    UnvisitedPoints unvisited(history);
    Proposal proposal;
    int repeated = 0;
    for (int i = 0; i < answer.parameter_assignments_size(); ++i) {
      if (static_cast<int>(proposal.suggestions.size()) == count) break;
      auto suggestion = ReadOne(answer.parameter_assignments(i), history);
      if (!suggestion.ok()) {
        return absl::DataLossError(absl::StrCat("its answer is refused: suggestion ", i + 1, " of ",
                                                answer.parameter_assignments_size(), ": ",
                                                Words(Message(suggestion.status()))));
      }
      const bool fresh = wire_.spec().has_nas_config() || unvisited.Claim(suggestion->point);
      if (fresh || suggestion->parent) {
        proposal.suggestions.push_back(*std::move(suggestion));
      } else {
        ++repeated;
      }
    }
    proposal.memo = MemoOf(answer, history);
    if (!proposal.suggestions.empty()) return proposal;
    // Of architectures there are more than there are points in a space without parameters.
    const bool tried = !wire_.spec().has_nas_config() && unvisited.Exhausted();
    return WhyNone({.repeated = repeated, .exhausted = exhausted || tried}, history,
                   std::move(proposal));
  }

  struct None {
    int repeated = 0;
    bool exhausted = false;
  };

  static StatusOr<Proposal> WhyNone(const None& none, const History& history, Proposal proposal) {
    int64_t active = 0;
    for (int64_t i = 0; i < history.size(); ++i) {
      active += history.trial(i).state == TrialState::kActive ? 1 : 0;
    }
    if (none.exhausted) {
      proposal.outcome = Proposal::Outcome::kExhausted;
      proposal.reason = "the remote algorithm has no further point";
      return proposal;
    }
    if (none.repeated > 0) {
      return absl::DataLossError(
          absl::StrCat("its answer is refused: ",
                       none.repeated == 1 ? "its suggestion has" : "all of its suggestions have",
                       " been tried before"));
    }
    if (active == 0) return absl::UnavailableError("it gives no point, though no trial runs");
    proposal.outcome = Proposal::Outcome::kWait;
    proposal.reason = absl::StrCat("the remote algorithm waits for the results of ", active,
                                   active == 1 ? " trial" : " trials");
    return proposal;
  }

  StatusOr<Suggestion> ReadOne(const Answer::ParameterAssignments& from,
                               const History& history) const {
    Suggestion suggestion;
    if (wire_.spec().has_nas_config()) {
      RETURN_IF_ERROR(ReadArchitecture(from, suggestion));
    } else {
      ASSIGN_OR_RETURN(suggestion.point, ParsePoint(space_, from.assignments()));
    }
    RETURN_IF_ERROR(ReadLabels(from, suggestion));
    const auto parent = from.labels().find(kPbtParent);
    if (parent != from.labels().end()) suggestion.parent = TrialNamed(parent->second, history);
    suggestion.explanation = "from " + who_;
    return suggestion;
  }

  // Texts that become an environment, arguments and files of a program.
  static Status ReadArchitecture(const Answer::ParameterAssignments& from, Suggestion& suggestion) {
    std::set<std::string> names;
    for (const katib::ParameterAssignment& one : from.assignments()) {
      const auto is_control = [](unsigned char c) { return c < ' ' && c != '\n' && c != '\t'; };
      const bool sensible = !one.name().empty() && one.name().size() <= kMaxLabel &&
                            one.value().size() <= kMaxAssignedBytes &&
                            names.insert(one.name()).second && Printable(one.name()) == one.name();
      if (!sensible || std::any_of(one.value().begin(), one.value().end(), is_control)) {
        return absl::InvalidArgumentError(
            absl::StrCat("assignment ", one.name().substr(0, kMaxLabel),
                         ": must have a name of its own, and a text of at most ", kMaxAssignedBytes,
                         " bytes without control characters"));
      }
      suggestion.labels.emplace_back(kAssignedLabel + one.name(), one.value());
    }
    if (!names.empty() && static_cast<int>(names.size()) <= kMaxAssigned) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("it has ", names.size(),
                                                   " assignments: from 1 to ", kMaxAssigned,
                                                   " describe an architecture"));
  }

  static Status ReadLabels(const Answer::ParameterAssignments& from, Suggestion& suggestion) {
    bool sensible = from.labels_size() <= kMaxLabels && from.trial_name().size() <= kMaxLabel;
    for (const auto& [name, value] : from.labels()) {
      sensible = sensible && name.size() <= kMaxLabel && value.size() <= kMaxLabel;
      suggestion.labels.emplace_back(Printable(name), Printable(value));
    }
    if (!sensible) return absl::InvalidArgumentError("labels or trialName of no sensible size");
    if (!from.trial_name().empty()) {
      suggestion.labels.emplace_back(kKatibName, Printable(from.trial_name()));
    }
    StableSort(suggestion.labels);
    return absl::OkStatus();
  }

  // Its newest checkpoint, if there is such a trial.
  std::optional<v1::Parent> TrialNamed(const std::string& name, const History& history) const {
    const ExperimentKey key{experiment_.metadata().namespace_(), experiment_.metadata().name()};
    for (int64_t i = history.size() - 1; i >= 0; --i) {
      if (KatibName(key, history, i) != name) continue;
      v1::Parent parent;
      parent.set_trial(i + 1);
      return parent;
    }
    return std::nullopt;
  }

  // Settings last until there are others, as in Katib.
  static std::string MemoOf(const Answer& answer, const History& history) {
    if (answer.algorithm().algorithm_settings_size() == 0) return history.memo();
    const std::string memo = kMemo + answer.algorithm().SerializeAsString();
    return memo.size() <= kMaxMemo ? memo : history.memo();
  }

  const v1::Experiment experiment_;
  const katib::Experiment wire_;
  const Space space_;
  const RemoteOptions options_;
  const std::string who_;
  const std::unique_ptr<katib::Suggestion::Stub> stub_;
  bool valid_ = false;  // the service has seen the experiment and said nothing against it

  Mutex mutex_;
  grpc::ClientContext* context_ ABSL_GUARDED_BY(mutex_) = nullptr;  // of the call under way
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

std::unique_ptr<Algorithm> MakeRemoteAlgorithm(const v1::Experiment& experiment, const Space& space,
                                               const RemoteOptions& options) {
  return std::make_unique<RemoteAlgorithm>(experiment, space, options);
}

}  // namespace shirabe::suggestion
