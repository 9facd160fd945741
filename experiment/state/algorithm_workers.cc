#include "experiment/state/algorithm_workers.h"

#include <iterator>
#include <utility>

#include "base/cancellation.h"
#include "suggestion/processor_turn.h"

namespace shirabe::experiment {
namespace {

constexpr int kRemoteCalls = 4;  // that one service is asked at the same time
// A worker stays so long without a call: a thread costs as much as a call of a simple algorithm.
constexpr absl::Duration kLinger = absl::Seconds(2);

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
    stop_ = true;
    for (auto& [name, lane] : lanes_) {
      lane.queue.clear();
      for (const auto& ticket : lane.running) ticket->Cancel();
    }
  }
  turns_.NotifyAll();
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

bool AlgorithmWorkers::MayTakeTurn(const Lane& lane) {
  return !lane.queue.empty() && lane.working < lane.most && lane.returning == 0 &&
         lane.away < kMostAway;
}

// One worker more, where there is work for it: the one that takes the turn calls this again.
void AlgorithmWorkers::Begin(Lane& lane) {
  if (!MayTakeTurn(lane)) return;
  if (lane.idle > 0) return turns_.NotifyAll();
  lane.workers.remove_if([](const Worker& worker) { return worker.done; });
  ++lane.working;
  Worker& worker = lane.workers.emplace_back();
  worker.thread = std::jthread([this, &lane, &worker] { Work(lane, worker); });
}

// False if no call comes.
bool AlgorithmWorkers::AwaitTurn(Lane& lane, MutexLock& lock) {
  --lane.working;
  ++lane.idle;
  turns_.NotifyAll();
  const bool may = turns_.WaitFor(lock, kLinger, [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stop_ || MayTakeTurn(lane);
  });
  --lane.idle;
  if (!may || stop_) return false;
  ++lane.working;
  return true;
}

void AlgorithmWorkers::Work(Lane& lane, Worker& worker) {
  const suggestion::ProcessorTurn turn([&] { GiveBack(lane); }, [&] { GetAgain(lane); });
  MutexLock lock(mutex_);
  do {
    while (!lane.queue.empty() && lane.returning == 0) {
      lane.running.push_back(std::move(lane.queue.front()));
      const auto ticket = std::prev(lane.running.end());
      lane.queue.pop_front();
      Begin(lane);
      lock.unlock();
      (*ticket)->Run();
      lock.lock();
      lane.running.erase(ticket);
    }
  } while (AwaitTurn(lane, lock));
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
