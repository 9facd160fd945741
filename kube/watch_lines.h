// The body of a watch, which is one JSON object a line, as events. Called by client.cc; one thread.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "kube/client.h"

namespace shirabe::kube {

class WatchLines {
 public:
  WatchLines(std::string what, const std::function<void(const WatchEvent&)>& sink)
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
