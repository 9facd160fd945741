// The dashboard beside a run (`shirabe run --ui`): shows the experiment while it runs and, in a
// terminal, until the user interrupts; elsewhere it ends with the run. It is served by the threads
// of the same process, so that nothing is left of it. Used by the main thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/names.h"
#include "base/status.h"
#include "client/client.h"
#include "cmd/options.h"
#include "cmd/page_server.h"
#include "cmd/terminal.h"

namespace shirabe::cmd {

// Of the verbs that serve the page; --no-open and --port mean something with --ui only.
struct PageFlags {
  bool ui = false;
  bool no_open = false;
  std::optional<int64_t> port;
};
void AddPageFlags(Options& options, PageFlags* flags);
Status CheckPageFlags(const PageFlags& flags);

class RunPage {
 public:
  struct Shown {
    client::Client& client;  // outlives it
    std::string home;        // where its token lies
  };
  // Serves it; without --ui nothing.
  static StatusOr<std::unique_ptr<RunPage>> Start(const PageFlags& flags, const Shown& shown);

  // Says where it is, on stderr, since stdout is the run's result, and opens it in a browser.
  void Announce(const ExperimentKey& experiment) const;
  // After the run, in a terminal: until the user interrupts, if that has not happened before.
  void StayUntilInterrupted(Interrupts& interrupts) const;

 private:
  std::unique_ptr<PageServer> server_;  // null = there is no page
  bool opens_browser_ = false;
  std::string home_;
};

}  // namespace shirabe::cmd
