// The dashboard for one user: an HTTP server on loopback over whatever client a verb has, of this
// machine's store or of a server, so that `ui` shows both alike. It runs no experiment. Its token
// is of its own and is all that the browser gets: secrets of a server stay in this process, and
// other users of the machine do not get in. Used by the main thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/names.h"
#include "base/status.h"
#include "client/client.h"
#include "client/local_client.h"
#include "service/http/http_server.h"

namespace shirabe::cmd {

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

}  // namespace shirabe::cmd
