#include "client/trial_pages.h"

namespace shirabe::client {
namespace {

constexpr int64_t kPage = 256;

}  // namespace

Status EachTrialPage(Client& client, const ExperimentKey& key,
                     const std::function<bool(std::vector<v1::Trial>&)>& page) {
  db::TrialQuery query{.experiment = key, .limit = kPage};
  for (;;) {
    ASSIGN_OR_RETURN(auto trials, client.ListTrials(query));
    if (trials.empty()) return absl::OkStatus();
    query.after_number = trials.back().number();
    const bool last = static_cast<int64_t>(trials.size()) < kPage;
    if (!page(trials) || last) return absl::OkStatus();
  }
}

}  // namespace shirabe::client
