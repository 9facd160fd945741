#include "experiment/state/algorithm_workers.h"

#include <iterator>
#include <utility>

#include "base/cancellation.h"
#include "suggestion/processor_turn.h"

namespace shirabe::experiment {
namespace {

constexpr int kRemoteCalls = 4;  // that one service is asked at the same time

}  // namespace

void Ticket::Cancel() {
  cancelled_ = true;
  OnCancel();
}

void Ticket::Run() {
  {
    const CancelScope scope([this] { return cancelled_.load(); });
    Call();
  }
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
    for (auto& [name, lane] : lanes_) {
      lane.queue.clear();
      for (const auto& ticket : lane.running) ticket->Cancel();
    }
  }
  for (auto& [name, lane] : lanes_) lane.workers.clear();  // each is joined
}

void AlgorithmWorkers::Submit(std::shared_ptr<Ticket> ticket) {  // shared: see the header
  if (threads_ == 0) {
    ticket->Run();
    return;
  }
  const MutexLock lock(mutex_);
  Lane& lane = lanes_[ticket->lane()];
  lane.most = ticket->lane().empty() ? threads_ : kRemoteCalls;
  lane.queue.push_back(std::move(ticket));
  Begin(lane);
}

// A worker that has a turn takes the next call before it ends.
void AlgorithmWorkers::Begin(Lane& lane) {
  if (lane.queue.empty() || lane.working == lane.most) return;
  if (lane.returning > 0 || lane.away >= kMostAway) return;
  lane.workers.remove_if([](const Worker& worker) { return worker.done; });
  ++lane.working;
  Worker& worker = lane.workers.emplace_back();
  worker.thread = std::jthread([this, &lane, &worker] { Work(lane, worker); });
}

void AlgorithmWorkers::Work(Lane& lane, Worker& worker) {
  const suggestion::ProcessorTurn turn([&] { GiveBack(lane); }, [&] { GetAgain(lane); });
  MutexLock lock(mutex_);
  while (!lane.queue.empty() && lane.returning == 0) {
    lane.running.push_back(std::move(lane.queue.front()));
    const auto ticket = std::prev(lane.running.end());
    lane.queue.pop_front();
    lock.unlock();
    (*ticket)->Run();
    lock.lock();
    lane.running.erase(ticket);
  }
  --lane.working;
  turns_.NotifyAll();
  worker.done = true;
}

void AlgorithmWorkers::GiveBack(Lane& lane) {
  const MutexLock lock(mutex_);
  --lane.working;
  ++lane.away;
  turns_.NotifyAll();
  Begin(lane);
}

void AlgorithmWorkers::GetAgain(Lane& lane) {
  MutexLock lock(mutex_);
  ++lane.returning;
  turns_.Wait(lock, [&lane] { return lane.working < lane.most; });
  --lane.returning;
  --lane.away;
  ++lane.working;
  Begin(lane);
}

}  // namespace shirabe::experiment
