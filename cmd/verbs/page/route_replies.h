// What the routes of HTTP answer, asked within this process: of this machine's store or of a
// server, with what may be secret left out (view/redaction.h). Used by one thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "client/client.h"
#include "view/redaction.h"

namespace shirabe::cmd {

class RouteReplies {
 public:
  struct Reply {
    std::string type;
    std::string body;
  };
  // `client` outlives it.
  RouteReplies(client::Client& client, view::Redactor redactor);
  ~RouteReplies();

  // GET /target, all of it; the error that the route answers with. `target` is as the page asks.
  StatusOr<Reply> Get(const std::string& target);
  // Of a text that grows (a log) the last lines, of that many bytes. What may be secret is looked
  // for in eight times as many.
  StatusOr<Reply> GetTail(const std::string& target, size_t max_bytes);
  // Of what must be asked with the experiment as it is stored.
  StatusOr<Reply> GetAsStored(const std::string& target);
  // A text without what may be secret.
  std::string Redact(const std::string& text) const { return redactor_.Redact(text); }
  // As the route of events shows them.
  Reply ShowEvents(std::vector<v1::Event> events) const;

 private:
  struct Routes;
  const view::Redactor redactor_;
  const std::unique_ptr<Routes> stored_, redacted_;
};

}  // namespace shirabe::cmd
