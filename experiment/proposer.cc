#include "experiment/proposer.h"

#include <utility>

namespace shirabe::experiment {

void ProposalTicket::Run() {
  StatusOr<suggestion::Proposal> proposal = algorithm->Propose(*history, count, Rng(seed));
  {
    std::lock_guard lock(mutex);
    result = std::move(proposal);
    history = nullptr;  // the owner may change it in place again
    changed.notify_all();
  }
  if (on_done) on_done();
}

bool ProposalTicket::Wait(absl::Duration patience) {
  std::unique_lock lock(mutex);
  return changed.wait_for(lock, absl::ToChronoMicroseconds(patience),
                          [this] { return result.has_value(); });
}

Proposer::Proposer(int threads) {
  for (int i = 0; i < threads; ++i) {
    threads_.emplace_back([this](std::stop_token stop) { Work(stop); });
  }
}

Proposer::~Proposer() {
  for (std::jthread& thread : threads_) thread.request_stop();
  changed_.notify_all();
}

void Proposer::Submit(std::shared_ptr<ProposalTicket> ticket) {  // shared: see the header
  if (threads_.empty()) {
    ticket->Run();
    return;
  }
  std::lock_guard lock(mutex_);
  queue_.push_back(std::move(ticket));
  changed_.notify_one();
}

void Proposer::Work(std::stop_token stop) {
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [this] { return !queue_.empty(); })) {
    const auto ticket = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    ticket->Run();
    lock.lock();
  }
}

}  // namespace shirabe::experiment
