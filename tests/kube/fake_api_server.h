// An API server in this process that does what a test tells it, for faults that a real one shows
// too seldom. A handler is called for each request, in a thread of its connection, and may answer
// in order, break off, or keep silent. Port 0; everything ends with the object.
#pragma once

#include <condition_variable>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "kube/cluster_config.h"
#include "kube/json_access.h"

namespace shirabe::kube {

struct FakeRequest {
  std::string method;
  std::string target;  // as it came; the two below are of it
  std::string path;
  std::map<std::string, std::string> query;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
};

// One request, and what becomes of it. Used by the handler, until it returns.
class FakeExchange {
 public:
  using Headers = std::vector<std::pair<std::string, std::string>>;
  virtual ~FakeExchange() = default;
  virtual const FakeRequest& request() const = 0;
  virtual void Reply(int status, const std::string& body, const Headers& headers = {}) = 0;
  // A piece of a chunked answer, begun by the first; false once the other side is gone.
  virtual bool Stream(const std::string& piece) = 0;
  virtual void EndStream() = 0;
  // These bytes as they are.
  virtual void Raw(const std::string& bytes) = 0;
  // The connection is reset. After it nothing can be sent.
  virtual void Reset() = 0;
  // Waits until the server is stopped, the other side hangs up, or `patience` is over. False if
  // there is nobody to speak to any more.
  virtual bool KeepSilent(absl::Duration patience) = 0;
};

class FakeApiServer {
 public:
  using Handler = std::function<void(FakeExchange&)>;
  struct Tls {
    std::string certificate;  // PEM; "" = plaintext
    std::string key;
    std::string client_ca;  // "" = asks for no certificate
  };

  explicit FakeApiServer(Handler handler, const Tls& tls = {});
  ~FakeApiServer();

  int port() const;
  Config config() const;  // http:// or https://127.0.0.1:PORT, with nothing else
  int connections() const;
  // "GET /api/v1/pods", in order.
  std::vector<std::string> requests() const;
  // How many begin so.
  int Count(const std::string& prefix) const;

  struct Impl;  // for the .cc alone

 private:
  std::unique_ptr<Impl> impl_;
};

// A Status object, as the API server answers errors.
std::string StatusText(int code, const std::string& reason, const std::string& message);

}  // namespace shirabe::kube
