// Any bytes as a request of Katib's clients: it is refused with a reason, or answered with points
// of its own search space that no trial of it has been given. What costs time by design is cut
// down.
#include <algorithm>
#include <cstdint>

#include "base/status.h"
#include "experiment/state/experiment_state.h"
#include "service/katib/katib_codec.h"

namespace {

constexpr int kMaxPoints = 8;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace shirabe;
  service::katib::GetSuggestionsRequest request;
  if (!request.ParseFromArray(data, static_cast<int>(size))) return 0;
  service::CheckAsKatib(request.experiment()).IgnoreError();
  const auto search = service::ReadSearch(request.experiment());
  if (!search.ok()) {
    CHECK(!search.status().message().empty());
    return 0;
  }
  request.set_current_request_number(std::min(request.current_request_number(), kMaxPoints));
  const auto known = service::ReadHistory(*search, request);
  if (!known.ok() || request.current_request_number() == 0) return 0;
  CHECK(known->history.size() + known->left_out == request.trials_size());
  const auto proposal = search->algorithm->Propose(known->history, request.current_request_number(),
                                                   Rng(experiment::SeedOf(search->experiment)));
  if (!proposal.ok()) return 0;
  for (const suggestion::Suggestion& suggestion : proposal->suggestions) {
    service::FormatAnswer(*search, *known, suggestion);
    const auto point = suggestion::FormatSuggestion(search->experiment.spec(), *known, suggestion);
    const auto back = suggestion::ParsePoint(search->space, point.assignments());
    CHECK(back.ok());
    CHECK(suggestion.parent || !known->history.Visited(*back));
  }
  return 0;
}
