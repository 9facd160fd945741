#include "service/katib/katib_suggestion.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "base/text/message_check.h"
#include "experiment/state/experiment_state.h"
#include "proto/katib/v1beta1/api.grpc.pb.h"
#include "service/grpc/grpc_caller.h"
#include "service/katib/katib_codec.h"

namespace shirabe::service {
namespace {

constexpr size_t kMaxMetadata = 512;

using Outcome = suggestion::Proposal::Outcome;

const char* WordFor(Outcome outcome) {
  switch (outcome) {
    case Outcome::kWait: return "wait";
    case Outcome::kExhausted: return "exhausted";
    case Outcome::kOk: break;
  }
  return "ok";
}

// Metadata are printable ASCII.
void AddTrailer(grpc::ServerContext& context, const char* key, std::string text) {
  text.resize(std::min(text.size(), kMaxMetadata));
  for (char& c : text) {
    if (!absl::ascii_isprint(c)) c = '?';
  }
  if (!text.empty()) context.AddTrailingMetadata(key, text);
}

void AddTrailers(grpc::ServerContext& context, const KatibSearch& search,
                 const suggestion::KatibHistory& known, const suggestion::Proposal& proposal) {
  AddTrailer(context, "shirabe-outcome", WordFor(proposal.outcome));
  std::vector<std::string> reasons = {proposal.reason, search.left_out, known.why};
  reasons.erase(std::remove(reasons.begin(), reasons.end(), ""), reasons.end());
  AddTrailer(context, "shirabe-reason", absl::StrJoin(reasons, "; "));
  AddTrailer(context, "shirabe-algorithm", proposal.algorithm);
  if (known.left_out > 0) AddTrailer(context, "shirabe-left-out", std::to_string(known.left_out));
}

class KatibSuggestion : public katib::Suggestion::Service {
 public:
  KatibSuggestion(KatibGate gate, SuggestionScheduler* turns)
      : gate_(std::move(gate)), turns_(turns) {}

  grpc::Status GetSuggestions(grpc::ServerContext* context,
                              const katib::GetSuggestionsRequest* request,
                              katib::GetSuggestionsReply* reply) override {
    return ToGrpc(InTurn(*context, "Suggestion/GetSuggestions", request->ByteSizeLong(),
                         [&] { return Suggest(*request, *context, *reply); }));
  }

  grpc::Status ValidateAlgorithmSettings(grpc::ServerContext* context,
                                         const katib::ValidateAlgorithmSettingsRequest* request,
                                         katib::ValidateAlgorithmSettingsReply*) override {
    return ToGrpc(InTurn(*context, "Suggestion/ValidateAlgorithmSettings", request->ByteSizeLong(),
                         [&] { return Validate(*request); }));
  }

 private:
  Status InTurn(const grpc::ServerContext& context, const std::string& method, size_t bytes,
                const std::function<Status()>& work) const {
    ASSIGN_OR_RETURN(const std::string caller, gate_(context, method));
    const CancelScope scope([&context] { return context.IsCancelled(); });
    return turns_->Run(caller, static_cast<int64_t>(bytes), work);
  }

  static Status Validate(const katib::ValidateAlgorithmSettingsRequest& request) {
    RETURN_IF_ERROR(CheckMessage(request));
    return CheckAsKatib(request.experiment());
  }

  static Status Suggest(const katib::GetSuggestionsRequest& request, grpc::ServerContext& context,
                        katib::GetSuggestionsReply& reply) {
    RETURN_IF_ERROR(CheckMessage(request));
    ASSIGN_OR_RETURN(const KatibSearch search, ReadSearch(request.experiment()));
    ASSIGN_OR_RETURN(const suggestion::KatibHistory known, ReadHistory(search, request));
    if (request.current_request_number() == 0) return absl::OkStatus();
    const Rng root(experiment::SeedOf(search.experiment));
    ASSIGN_OR_RETURN(
        const suggestion::Proposal proposal,
        search.algorithm->Propose(known.history, request.current_request_number(), root));
    for (const suggestion::Suggestion& suggestion : proposal.suggestions) {
      *reply.add_parameter_assignments() = FormatAnswer(search, known, suggestion);
    }
    AddTrailers(context, search, known, proposal);
    return absl::OkStatus();
  }

  const KatibGate gate_;
  SuggestionScheduler* const turns_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeKatibSuggestion(KatibGate gate, SuggestionScheduler* turns) {
  return std::make_unique<KatibSuggestion>(std::move(gate), turns);
}

}  // namespace shirabe::service
