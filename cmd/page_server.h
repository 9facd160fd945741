// The dashboard for one user: an HTTP server on loopback over whatever client a verb has, of this
// machine's store or of a server, so that `ui` shows both alike. It runs no experiment. Its token
// is of its own and is all that the browser gets: secrets of a server stay in this process, and
// other users of the machine do not get in. Used by the main thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/names.h"
#include "base/status.h"
#include "client/client.h"
#include "client/local_client.h"
#include "cmd/options.h"
#include "cmd/terminal.h"
#include "service/http/http_server.h"

namespace shirabe::cmd {

// A client of any kind where the routes of HTTP want one of a store: it passes calls on, and runs
// nothing. Thread-safe, as the client is that it is given, which outlives it.
class ForwardingClient : public client::LocalClient {
 public:
  explicit ForwardingClient(client::Client& client) : client_(client) {}

  Status Call(const client::Method& method, const google::protobuf::Message& request,
              const client::Sink& sink) override;
  std::string LogLocation(const AttemptKey& key) override;
  Status DeleteExperiment(const v1::DeleteRequest& request, const client::Wait& wait) override;
  StatusOr<std::unique_ptr<experiment::Controller>> MakeController(
      client::ExecutionOptions machines, int workers) override;
  Status CheckToken(const TrialKey& key, const std::string& token) override;
  void SetNamespaces(client::NamespaceUid /*uid*/) override {}
  // For backups and pruning, which no page asks for: there may be none.
  db::Store& store() override;
  std::shared_ptr<const artifacts::StoreTable> stores() const override {  // shared: the interface
    return nullptr;
  }
  // For a server that starts what is due, which this is not.
  schedule::ScheduleRecords& schedules() override;
  void Attach(experiment::Controller* /*controller*/) override {}

 private:
  client::Client& client_;
};

class PageServer {
 public:
  struct Options {
    client::Client* client = nullptr;  // outlives it
    std::string home;                  // where its token lies
    int64_t port = 0;                  // 0 = any that is free
  };
  static StatusOr<std::unique_ptr<PageServer>> Start(const Options& options);
  virtual ~PageServer() = default;

  // Of an experiment, or of the list where its name is empty, with the token behind the '#', which
  // a browser does not send.
  virtual std::string Address(const ExperimentKey& experiment) const = 0;
};

// Shows the address in the user's browser: $BROWSER, else xdg-open. Other users can read the words
// of a command, so the browser is given a file in `home` that only its owner can read and that
// leads to the address. False where there is no browser to be seen.
bool OpenInBrowser(const std::string& address, const std::string& home);

// The dashboard beside a run (`shirabe run --ui`): shows the experiment while it runs and, in a
// terminal, until the user interrupts; elsewhere it ends with the run. It is served by the threads
// of the same process, so that nothing is left of it. Used by the main thread.

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
