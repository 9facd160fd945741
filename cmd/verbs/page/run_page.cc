#include "cmd/verbs/page/run_page.h"

#include <cstdio>

namespace shirabe::cmd {
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

}  // namespace shirabe::cmd
