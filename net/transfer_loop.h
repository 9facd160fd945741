// Calls that share connections, and are driven by one thread (libcurl's multi interface). Used by
// net/http_client.cc. One thread at a time; Wake may come from any.
#pragma once

#include <set>
#include <vector>

#include "net/curl_library.h"
#include "net/transfer.h"

namespace shirabe::net {

class TransferLoop {
 public:
  // Shared: with several calls at the same time.
  TransferLoop(const CurlLibrary& curl, bool shared);
  ~TransferLoop();
  TransferLoop(const TransferLoop&) = delete;
  TransferLoop& operator=(const TransferLoop&) = delete;

  void Add(Transfer* transfer);
  // Ends it, if it has not ended yet.
  void Cancel(Transfer* transfer);
  // Does what can be done now. Returns those that have come to an end.
  std::vector<Transfer*> Step();
  // Until there is something to do, or Wake.
  void Wait();
  void Wake();

 private:
  void Remove(Transfer* transfer);

  const CurlLibrary& curl_;
  const bool shared_;
  CURLM* const multi_;
  Sockets sockets_;
  std::set<Transfer*> active_;
};

}  // namespace shirabe::net
