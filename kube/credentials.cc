#include "kube/credentials.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "kube/exec_plugin.h"

namespace shirabe::kube {
namespace {

constexpr int64_t kMaxToken = 1 << 20;
// A plugin's credential is renewed before it expires: clocks differ, and a call takes time.
constexpr absl::Duration kMargin = absl::Seconds(10);

// Changes whenever the file does: tokens of pods are rotated by exchanging a symbolic link.
std::string StampOf(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return "";
  return absl::StrCat(info.st_ino, " ", info.st_size, " ", info.st_mtim.tv_sec, ".",
                      info.st_mtim.tv_nsec);
}

// What could break out of the header, or is none at all.
bool IsToken(const std::string& text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return c > ' ' && c < 0x7f; });
}

StatusOr<std::string> Bearer(const std::string& token, const std::string& field) {
  const std::string trimmed(absl::StripAsciiWhitespace(token));
  if (IsToken(trimmed)) return "Bearer " + trimmed;
  return absl::InvalidArgumentError(field + " holds no token: one word of printable characters");
}

}  // namespace

void Credentials::Take(Credential credential) {
  credential.generation = current_.generation + 1;
  current_ = std::move(credential);
  ready_ = true;
}

Status Credentials::ReadToken() {
  const std::string stamp = StampOf(config_.token_file);
  if (ready_ && stamp == stamp_) return absl::OkStatus();
  auto token = ReadFile(config_.token_file, kMaxToken);
  auto bearer = token.ok() ? Bearer(*token, config_.token_file) : token.status();
  if (!bearer.ok()) {
    // In the middle of a rotation the old one is still good.
    return ready_ ? absl::OkStatus() : bearer.status();
  }
  stamp_ = stamp;
  Take({.authorization = *bearer, .certificate = config_.certificate, .key = config_.key});
  return absl::OkStatus();
}

Status Credentials::RunPlugin() {
  if (ready_ && clock_->Now() + kMargin < expires_) return absl::OkStatus();
  ASSIGN_OR_RETURN(const ExecCredential given, RunExecPlugin(config_, clock_));
  Credential credential{.certificate = given.certificate, .key = given.key};
  if (!given.token.empty()) {
    ASSIGN_OR_RETURN(credential.authorization, Bearer(given.token, "what user.exec printed"));
  }
  expires_ = given.expires;
  Take(std::move(credential));
  return absl::OkStatus();
}

StatusOr<Credential> Credentials::Current() {
  const std::lock_guard lock(mutex_);
  if (!config_.token_file.empty()) {
    RETURN_IF_ERROR(ReadToken());
  } else if (!config_.exec.command.empty()) {
    RETURN_IF_ERROR(RunPlugin());
  } else if (!ready_) {
    Credential credential{.certificate = config_.certificate, .key = config_.key};
    if (!config_.token.empty()) {
      ASSIGN_OR_RETURN(credential.authorization, Bearer(config_.token, "user.token"));
    } else if (!config_.username.empty()) {
      credential.authorization =
          "Basic " + absl::Base64Escape(config_.username + ":" + config_.password);
    }
    Take(std::move(credential));
  }
  return current_;
}

bool Credentials::Renew(int64_t refused) {
  const std::lock_guard lock(mutex_);
  if (current_.generation != refused) return true;  // another call has seen to it
  if (!config_.token_file.empty()) {
    return StampOf(config_.token_file) != stamp_;
  }
  expires_ = absl::InfinitePast();
  return !config_.exec.command.empty();
}

}  // namespace shirabe::kube
