// One thread that sleeps until processes end. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "base/file_io.h"
#include "base/status.h"

namespace shirabe::trial {

class ExitWatcher {
 public:
  // `on_exits` is called in the watcher's thread, with the ids of processes that ended at about
  // the same time. It must not destroy the watcher.
  using OnExits = std::function<void(const std::vector<uint64_t>& ids)>;

  static StatusOr<std::unique_ptr<ExitWatcher>> Create(OnExits on_exits);
  // What Create calls.
  ExitWatcher(Fd epoll, Fd stop, OnExits on_exits);
  // Waits for a call of on_exits that is under way.
  ~ExitWatcher();

  // `id` is reported once, when the process of `pidfd` ends, also if it has ended before. Closing
  // the descriptor ends the watch; a report that is on its way may still come.
  Status Watch(const Fd& pidfd, uint64_t id);

 private:
  void Run();

  Fd epoll_;
  Fd stop_;  // an eventfd, written once
  OnExits on_exits_;
  std::thread thread_;
};

}  // namespace shirabe::trial
