// What a Status object of the API server means, as kube/api_client.h lists it (ToStatus, pure
// functions), and the events in the body of a watch (WatchDecoder).
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "kube/json_access.h"
#include "net/http_client.h"

namespace shirabe::kube {

// Of an answer that is not 2xx: "WHAT: the server's words".
Status ToStatus(const std::string& what, const net::HttpResponse& answer);
// Of a Status object; also for the ERROR event of a watch.
Status ToStatus(const std::string& what, int http_status, const Json& status);

// Whether something could not be made because its namespace is being deleted, or is gone: trying
// again will not make it.
bool IsNamespaceGone(const Status& status);

// The body of a watch, which is one JSON object a line, as events. Called by kube/api_client.cc;
// one thread.
class WatchDecoder {
 public:
  WatchDecoder(std::string what, const std::function<void(const WatchEvent&)>& sink)
      : what_(std::move(what)), sink_(sink) {}

  // Tells the events that are complete. False once the watch cannot go on; status() says why.
  bool Add(std::string_view piece);
  // The body has ended: not OK if it did so inside a line.
  Status End();
  const Status& status() const { return status_; }

 private:
  void Decode(std::string_view line);

  const std::string what_;
  const std::function<void(const WatchEvent&)>& sink_;
  std::string line_;  // not complete yet
  Status status_;
};

}  // namespace shirabe::kube
