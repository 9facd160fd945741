#include "experiment/state/algorithm_workers.h"

#include <iterator>
#include <utility>

namespace shirabe::experiment {
namespace {

constexpr int kRemoteCalls = 4;  // that one service is asked at the same time
// A worker stays so long without a call: a thread costs as much as a call of a simple algorithm.
constexpr absl::Duration kLinger = absl::Seconds(2);

}  // namespace

void Ticket::Run() {
  Call();
  {
    const MutexLock lock(mutex_);
    done_ = true;
    changed_.NotifyAll();
  }
  if (on_done_) on_done_();
}

bool Ticket::Wait(absl::Duration patience) {
  MutexLock lock(mutex_);
  return changed_.WaitFor(lock, patience,
                          [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return done_; });
}

void StopTicket::Call() {
  for (Question& question : questions) {
    question.reason = stopper->ShouldStop(question.trial - 1, *history, *curves);
  }
}

AlgorithmWorkers::~AlgorithmWorkers() {
  {
    const MutexLock lock(mutex_);
    stop_ = true;
    for (auto& [name, lane] : lanes_) {
      lane.queue.clear();
      for (const auto& ticket : lane.running) ticket->Cancel();
    }
  }
  queued_.NotifyAll();
  for (auto& [name, lane] : lanes_) lane.workers.clear();  // each is joined
}

void AlgorithmWorkers::Submit(std::shared_ptr<Ticket> ticket) {  // shared: see the header
  if (threads_ == 0) {
    ticket->Run();
    return;
  }
  const MutexLock lock(mutex_);
  Lane& lane = lanes_[ticket->lane()];
  const auto most = static_cast<size_t>(ticket->lane().empty() ? threads_ : kRemoteCalls);
  lane.queue.push_back(std::move(ticket));
  lane.workers.remove_if([](const Worker& worker) { return worker.done; });
  if (lane.queue.size() <= lane.idle) return queued_.NotifyAll();
  if (lane.workers.size() == most) return;  // each takes the next call before it ends
  Worker& worker = lane.workers.emplace_back();
  worker.thread = std::jthread([this, &lane, &worker] { Work(lane, worker); });
}

// False if none comes.
bool AlgorithmWorkers::AwaitCall(Lane& lane, MutexLock& lock) {
  ++lane.idle;
  queued_.WaitFor(lock, kLinger, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stop_ || !lane.queue.empty();
  });
  --lane.idle;
  return !lane.queue.empty();
}

void AlgorithmWorkers::Work(Lane& lane, Worker& worker) {
  MutexLock lock(mutex_);
  while (AwaitCall(lane, lock)) {
    lane.running.push_back(std::move(lane.queue.front()));
    const auto ticket = std::prev(lane.running.end());
    lane.queue.pop_front();
    lock.unlock();
    (*ticket)->Run();
    lock.lock();
    lane.running.erase(ticket);
  }
  worker.done = true;
}

}  // namespace shirabe::experiment
