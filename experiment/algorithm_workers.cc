#include "experiment/algorithm_workers.h"

#include <iterator>
#include <utility>

namespace shirabe::experiment {
namespace {

constexpr int kRemoteCalls = 4;  // that one service is asked at the same time

}  // namespace

void Ticket::Run() {
  Call();
  {
    std::lock_guard lock(mutex_);
    done_ = true;
    changed_.notify_all();
  }
  if (on_done) on_done();
}

bool Ticket::Wait(absl::Duration patience) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, absl::ToChronoMicroseconds(patience), [this] { return done_; });
}

void StopTicket::Call() {
  for (Question& question : questions) {
    question.reason = stopper->ShouldStop(question.trial - 1, *history, *curves);
  }
}

Proposer::~Proposer() {
  {
    std::lock_guard lock(mutex_);
    for (auto& [name, lane] : lanes_) {
      lane.queue.clear();
      for (const auto& ticket : lane.running) ticket->Cancel();
    }
  }
  for (auto& [name, lane] : lanes_) lane.workers.clear();  // each is joined
}

void Proposer::Submit(std::shared_ptr<Ticket> ticket) {  // shared: see the header
  if (threads_ == 0) {
    ticket->Run();
    return;
  }
  std::lock_guard lock(mutex_);
  Lane& lane = lanes_[ticket->lane];
  const auto most = static_cast<size_t>(ticket->lane.empty() ? threads_ : kRemoteCalls);
  lane.queue.push_back(std::move(ticket));
  lane.workers.remove_if([](const Worker& worker) { return worker.done; });
  if (lane.workers.size() == most) return;  // each takes the next call before it ends
  Worker& worker = lane.workers.emplace_back();
  worker.thread = std::jthread([this, &lane, &worker] { Work(lane, worker); });
}

void Proposer::Work(Lane& lane, Worker& worker) {
  std::unique_lock lock(mutex_);
  while (!lane.queue.empty()) {
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
