#include "kube/credentials.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/file_io.h"
#include "base/printable.h"
#include "base/text/json_text.h"
#include "kube/json_access.h"

extern char** environ;

namespace shirabe::kube {
namespace {

constexpr size_t kMaxOutput = 1 << 20;
constexpr size_t kMaxStderr = 400;  // of stderr, in a message

// What the plugin is told: KUBERNETES_EXEC_INFO.
std::string ExecInfo(const Config& config) {
  Json info = {{"apiVersion", config.exec.api_version},
               {"kind", "ExecCredential"},
               {"spec", {{"interactive", false}}}};
  if (config.exec.provide_cluster_info) {
    Json cluster = {{"server", config.server}};
    if (!config.server_name.empty()) cluster["tls-server-name"] = config.server_name;
    if (config.insecure) cluster["insecure-skip-tls-verify"] = true;
    if (!config.ca.empty()) {
      cluster["certificate-authority-data"] = absl::Base64Escape(config.ca);
    }
    info["spec"]["cluster"] = cluster;
  }
  return Dump(info);
}

std::vector<std::string> EnvironmentOf(const Config& config) {
  std::map<std::string, std::string> wanted = config.exec.env;
  wanted["KUBERNETES_EXEC_INFO"] = ExecInfo(config);
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (!wanted.contains(std::string(text.substr(0, text.find('='))))) all.emplace_back(text);
  }
  for (const auto& [name, value] : wanted) all.push_back(name + "=" + value);
  return all;
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

struct Pipe {
  Fd read, write;
  static StatusOr<Pipe> Make() {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) return ErrnoStatus("pipe", errno);
    return Pipe{Fd(ends[0]), Fd(ends[1])};
  }
};

// A child in a process group of its own, so that what it starts ends with it.
class Child {
 public:
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  Child() = default;
  ~Child() {
    if (pid_ <= 0) return;
    kill(-pid_, SIGKILL);
    int ignored = 0;
    while (waitpid(pid_, &ignored, 0) < 0 && errno == EINTR) {
    }
  }

  Status Start(const Config& config);
  // Reads both streams to their end; kDeadlineExceeded if that takes longer.
  Status Read(Clock* clock, absl::Duration deadline);
  // The exit status as waitpid tells it.
  StatusOr<int> Wait(Clock* clock, absl::Duration deadline);

  const std::string& output() const { return output_; }
  std::string LastWords() const {
    std::string words = Printable(errors_);
    while (!words.empty() && (words.back() == '\n' || words.back() == ' ')) words.pop_back();
    return words.size() <= kMaxStderr ? words : "…" + words.substr(words.size() - kMaxStderr);
  }

 private:
  pid_t pid_ = 0;
  Fd out_, err_;
  std::string output_, errors_;
};

Status Child::Start(const Config& config) {
  ASSIGN_OR_RETURN(Pipe out, Pipe::Make());
  ASSIGN_OR_RETURN(Pipe err, Pipe::Make());
  std::vector<std::string> argv = {config.exec.command};
  argv.insert(argv.end(), config.exec.args.begin(), config.exec.args.end());
  std::vector<std::string> environment = EnvironmentOf(config);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out.write.get(), 1);
  posix_spawn_file_actions_adddup2(&actions, err.write.get(), 2);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  const int error = posix_spawnp(&pid_, argv[0].c_str(), &actions, &attributes,
                                 Pointers(argv).data(), Pointers(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    pid_ = 0;
    return ErrnoStatus("user.exec.command " + config.exec.command, error);
  }
  out_ = std::move(out.read);
  err_ = std::move(err.read);
  return absl::OkStatus();
}

Status Child::Read(Clock* clock, absl::Duration deadline) {
  while (out_.valid() || err_.valid()) {
    const absl::Duration left = deadline - clock->Monotonic();
    if (left <= absl::ZeroDuration()) return absl::DeadlineExceededError("it does not end");
    // A descriptor of -1 is passed over.
    std::array<pollfd, 2> polled = {pollfd{out_.get(), POLLIN, 0}, pollfd{err_.get(), POLLIN, 0}};
    const int wait_ms =
        static_cast<int>(std::clamp<int64_t>(absl::ToInt64Milliseconds(left), 1, 1000));
    if (poll(polled.data(), polled.size(), wait_ms) <= 0) continue;
    for (size_t i = 0; i < polled.size(); ++i) {
      if (polled[i].revents == 0) continue;
      Fd& from = i == 0 ? out_ : err_;
      std::string& into = i == 0 ? output_ : errors_;
      std::array<char, 4096> piece;
      const ssize_t n = read(from.get(), piece.data(), piece.size());
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) from = Fd();
      if (n > 0) into.append(piece.data(), static_cast<size_t>(n));
      if (into.size() > kMaxOutput) return absl::ResourceExhaustedError("it prints without end");
    }
  }
  return absl::OkStatus();
}

StatusOr<int> Child::Wait(Clock* clock, absl::Duration deadline) {
  int status = 0;
  for (;;) {
    const pid_t pid = waitpid(pid_, &status, WNOHANG);
    if (pid < 0 && errno != EINTR) return ErrnoStatus("waitpid", errno);
    if (pid > 0) {
      pid_ = 0;
      return status;
    }
    if (clock->Monotonic() > deadline) return absl::DeadlineExceededError("it does not end");
    Pause(absl::Milliseconds(5));
  }
}

StatusOr<ExecCredential> Parse(const std::string& output, const std::string& version) {
  const Json said = ReadJsonOrDiscarded(output);
  if (said.is_discarded() || Text(said, {"kind"}) != "ExecCredential") {
    return absl::PermissionDeniedError("it printed no ExecCredential");
  }
  if (Text(said, {"apiVersion"}) != version) {
    return absl::PermissionDeniedError(
        absl::StrCat("it answered in another version than ", version));
  }
  ExecCredential credential;
  credential.token = Text(said, {"status", "token"});
  credential.certificate = Text(said, {"status", "clientCertificateData"});
  credential.key = Text(said, {"status", "clientKeyData"});
  if (credential.token.empty() && (credential.certificate.empty() || credential.key.empty())) {
    return absl::PermissionDeniedError(
        "its ExecCredential holds neither a token nor a certificate");
  }
  const std::string expires = Text(said, {"status", "expirationTimestamp"});
  std::string why;
  if (!expires.empty() &&
      !absl::ParseTime(absl::RFC3339_full, expires, &credential.expires, &why)) {
    return absl::PermissionDeniedError("its expirationTimestamp is not a time: " + expires);
  }
  return credential;
}

std::string Outcome(int status) {
  if (WIFSIGNALED(status)) return absl::StrCat("was ended by signal ", WTERMSIG(status));
  return absl::StrCat("ended with exit code ", WEXITSTATUS(status));
}

}  // namespace

StatusOr<ExecCredential> RunExecPlugin(const Config& config, Clock* clock,
                                       absl::Duration patience) {
  const absl::Duration deadline = clock->Monotonic() + patience;
  const std::string prefix = "user.exec.command " + config.exec.command;
  Child child;
  RETURN_IF_ERROR(child.Start(config));
  RETURN_IF_ERROR(Prefix(prefix, child.Read(clock, deadline)));
  const auto status = child.Wait(clock, deadline);
  RETURN_IF_ERROR(Prefix(prefix, status.status()));
  if (*status != 0) {
    const std::string words = child.LastWords();
    return absl::PermissionDeniedError(
        absl::StrCat(prefix, " ", Outcome(*status), words.empty() ? "" : ": ", words));
  }
  auto credential = Parse(child.output(), config.exec.api_version);
  RETURN_IF_ERROR(Prefix(prefix, credential.status()));
  return credential;
}

namespace {

constexpr int64_t kMaxToken = 1 << 20;
// A plugin's credential is renewed before it expires: clocks differ, and a call takes time.
constexpr absl::Duration kRenewMargin = absl::Seconds(10);

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
  return absl::InvalidArgumentError(field +
                                    " does not hold a token: one word of printable characters");
}

}  // namespace

void Credentials::SetCurrent(Credential credential) {
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
  SetCurrent({.authorization = *bearer, .certificate = config_.certificate, .key = config_.key});
  return absl::OkStatus();
}

Status Credentials::RunPlugin() {
  if (ready_ && clock_->Now() + kRenewMargin < expires_) return absl::OkStatus();
  ASSIGN_OR_RETURN(const ExecCredential given, RunExecPlugin(config_, clock_));
  Credential credential{.certificate = given.certificate, .key = given.key};
  if (!given.token.empty()) {
    ASSIGN_OR_RETURN(credential.authorization, Bearer(given.token, "what user.exec printed"));
  }
  expires_ = given.expires;
  SetCurrent(std::move(credential));
  return absl::OkStatus();
}

StatusOr<Credential> Credentials::Current() {
  const MutexLock lock(mutex_);
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
    SetCurrent(std::move(credential));
  }
  return current_;
}

bool Credentials::Renew(int64_t refused) {
  const MutexLock lock(mutex_);
  if (current_.generation != refused) return true;  // another call has seen to it
  if (!config_.token_file.empty()) {
    return StampOf(config_.token_file) != stamp_;
  }
  expires_ = absl::InfinitePast();
  return !config_.exec.command.empty();
}

}  // namespace shirabe::kube
