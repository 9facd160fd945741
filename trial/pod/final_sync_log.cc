#include "trial/pod/final_sync_log.h"

#include "absl/strings/escaping.h"

namespace shirabe::trial {
namespace {

constexpr std::string_view kPrefix = "shirabe-last-words: ";

}  // namespace

std::string FinalSyncLine(v1::SyncRequest request) {
  request.clear_token();
  return std::string(kPrefix) + absl::Base64Escape(request.SerializeAsString()) + "\n";
}

std::vector<v1::SyncRequest> ParseFinalSync(std::string_view log) {
  std::vector<v1::SyncRequest> words;
  // A line without its end may be cut off where it would still make sense.
  for (size_t end = log.find('\n'); end != std::string_view::npos; end = log.find('\n')) {
    std::string_view line = log.substr(0, end);
    log.remove_prefix(end + 1);
    const size_t at = line.find(kPrefix);
    if (at == std::string_view::npos) continue;
    line.remove_prefix(at + kPrefix.size());
    std::string bytes;
    v1::SyncRequest request;
    if (absl::Base64Unescape({line.data(), line.size()}, &bytes) &&
        request.ParseFromString(bytes)) {
      words.push_back(std::move(request));
    }
  }
  return words;
}

}  // namespace shirabe::trial
