#include "kube/namespaces.h"

namespace shirabe::kube {
namespace {

const Resource kNamespaces{"", "v1", "namespaces", "Namespace", /*namespaced=*/false};
constexpr absl::Duration kStands = absl::Seconds(2);
constexpr size_t kMost = 4096;

bool IsKnown(const StatusOr<std::string>& answer) {
  return answer.ok() || absl::IsNotFound(answer.status());
}

}  // namespace

StatusOr<std::string> Namespaces::Uid(const std::string& name) {
  {
    const std::lock_guard lock(mutex_);
    if (entries_.size() >= kMost) {
      std::erase_if(entries_, [](const auto& entry) { return !entry.second.asking; });
    }
    Entry& entry = entries_[name];
    const bool stands = clock_->Monotonic() < entry.until;
    if (stands || (entry.asking && IsKnown(entry.answer))) return entry.answer;
    entry.asking = true;
  }
  const auto object = client_->Get({kNamespaces, "", name});
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_[name];
  entry.asking = false;
  entry.until = clock_->Monotonic() + kStands;
  const StatusOr<std::string> answer =
      object.ok() ? StatusOr<std::string>(UidOf(*object)) : object.status();
  if (IsKnown(answer) || !IsKnown(entry.answer)) entry.answer = answer;
  return entry.answer;
}

}  // namespace shirabe::kube
