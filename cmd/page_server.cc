#include "cmd/page_server.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/file_io.h"
#include "client/state_location.h"
#include "service/common/authorization.h"

extern char** environ;

namespace shirabe::cmd {
namespace {

// The last word of the first line.
StatusOr<std::string> ReadToken(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path, 1 << 20));
  const std::string line = text.substr(0, text.find('\n'));
  return std::string(absl::StripAsciiWhitespace(line.substr(line.rfind(' ') + 1)));
}

class LoopbackPage : public PageServer {
 public:
  LoopbackPage(client::Client& client, service::Tokens tokens, std::string token)
      : client_(client), tokens_(std::move(tokens)), token_(std::move(token)) {}

  Status Listen(int64_t port) {
    service::HttpOptions options{.address = absl::StrCat("127.0.0.1:", port)};
    options.context = {
        .client = &client_, .tokens = &tokens_, .clock = RealClock(), .loopback_only = true};
    ASSIGN_OR_RETURN(http_, service::HttpServer::Start(std::move(options)));
    return absl::OkStatus();
  }

  std::string Address(const ExperimentKey& experiment) const override {
    const std::string place =
        experiment.name.empty() ? "/" : absl::StrCat("/e/", experiment.ns, "/", experiment.name);
    return absl::StrCat("http://", http_->address(), "/#token=", token_, "&", place);
  }

 private:
  ForwardingClient client_;
  const service::Tokens tokens_;
  const std::string token_;
  std::unique_ptr<service::HttpServer> http_;
};

bool WritePrivately(const std::string& path, const std::string& text) {
  unlink(path.c_str());  // one that is there may be open to others
  const Fd file(open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0600));
  return file.valid() &&
         write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

// Starts it with the file, and does not wait for it.
bool StartBrowser(const std::string& command, const std::string& file) {
  std::string shell = "/bin/sh", flag = "-c", words = command + " \"$1\"", path = file;
  char* argv[] = {shell.data(), flag.data(), words.data(), shell.data(), path.data(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
  }
  // Ctrl-C here is not meant for it, and the signals that are blocked here are not blocked there.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  pid_t pid = 0;
  const int error = posix_spawn(&pid, argv[0], &actions, &attributes, argv, environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  return error == 0;
}

}  // namespace

StatusOr<std::unique_ptr<PageServer>> PageServer::Start(const Options& options) {
  std::error_code ignored;  // where it cannot be made, the token says so
  std::filesystem::create_directories(options.home, ignored);
  const std::string path = options.home + "/ui-token";
  ASSIGN_OR_RETURN(service::Tokens tokens, service::Tokens::Load(path));
  ASSIGN_OR_RETURN(std::string token, ReadToken(path));
  auto page = std::make_unique<LoopbackPage>(*options.client, std::move(tokens), std::move(token));
  RETURN_IF_ERROR(Prefix("--port", page->Listen(options.port)));
  return page;
}

bool OpenInBrowser(const std::string& address, const std::string& home) {
  const client::Environment environment = client::ProcessEnvironment();
  std::string command = environment("BROWSER").value_or("");
  const bool seen = !environment("DISPLAY").value_or("").empty() ||
                    !environment("WAYLAND_DISPLAY").value_or("").empty();
  if (command.empty() && !seen) return false;
  if (command.empty()) command = "xdg-open";
  const std::string file = home + "/ui.html";
  // The address holds no character that HTML would read: a token is letters and digits.
  const std::string text = absl::StrCat(
      "<!doctype html><meta charset=utf-8><title>Shirabe</title>"
      "<meta http-equiv=refresh content=\"0; url=",
      address, "\">\n");
  return WritePrivately(file, text) && StartBrowser(command, file);
}

namespace {

constexpr absl::Duration kRunPagePoll = absl::Milliseconds(200);
constexpr int64_t kLastPort = 65535;

}  // namespace

void AddPageFlags(Options& options, PageFlags* flags) {
  options.Flag("--ui", &flags->ui,
               "show the experiment in a browser while it runs; in a terminal until Ctrl-C");
  options.Number("--port", &flags->port, 0, "of the page on 127.0.0.1 (default any that is free)");
  options.Flag("--no-open", &flags->no_open, "print the page's address only");
}

Status CheckPageFlags(const PageFlags& flags) {
  if (!flags.ui && flags.port) return UsageError("--port is of the page: give --ui as well");
  if (!flags.ui && flags.no_open) return UsageError("--no-open is of the page: give --ui as well");
  if (flags.port.value_or(0) > kLastPort) return UsageError("--port must be at most 65535");
  return absl::OkStatus();
}

StatusOr<std::unique_ptr<RunPage>> RunPage::Start(const PageFlags& flags, const Shown& shown) {
  auto page = std::make_unique<RunPage>();
  if (!flags.ui) return page;
  page->opens_browser_ = !flags.no_open && StderrIsTerminal();
  page->home_ = shown.home;
  ASSIGN_OR_RETURN(page->server_, PageServer::Start({.client = &shown.client,
                                                     .home = shown.home,
                                                     .port = flags.port.value_or(0)}));
  return page;
}

void RunPage::Announce(const ExperimentKey& experiment) const {
  if (server_ == nullptr) return;
  const std::string address = server_->Address(experiment);
  // It was asked for, so --quiet does not hide it.
  std::fprintf(stderr, "%s\n", address.c_str());
  if (opens_browser_ && !OpenInBrowser(address, home_)) {
    Hint("no browser is at hand: open the address yourself");
  }
}

void RunPage::StayUntilInterrupted(Interrupts& interrupts) const {
  if (server_ == nullptr || !StderrIsTerminal()) return;
  Hint("the page stays until Ctrl-C");
  while (interrupts.Wait(kRunPagePoll) == 0) {
  }
}

Status ForwardingClient::Call(const client::Method& method,
                              const google::protobuf::Message& request, const client::Sink& sink) {
  return client_.Call(method, request, sink);
}

std::string ForwardingClient::LogLocation(const AttemptKey& key) {
  return client_.LogLocation(key);
}

Status ForwardingClient::DeleteExperiment(const v1::DeleteRequest& request,
                                          const client::Wait& wait) {
  return client_.DeleteExperiment(request, wait);
}

StatusOr<std::unique_ptr<experiment::Controller>> ForwardingClient::MakeController(
    client::ExecutionOptions /*machines*/, int /*workers*/) {
  return absl::UnimplementedError("the dashboard runs no experiments");
}

Status ForwardingClient::CheckToken(const TrialKey& /*key*/, const std::string& /*token*/) {
  return absl::PermissionDeniedError("trials do not report to the dashboard");
}

db::Store& ForwardingClient::store() {
  CheckFailed(__FILE__, __LINE__, "the dashboard's client has no store");
}

schedule::ScheduleRecords& ForwardingClient::schedules() {
  CheckFailed(__FILE__, __LINE__, "the dashboard's client has no schedules of its own");
}

}  // namespace shirabe::cmd
