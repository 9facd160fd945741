#include "experiment/proposer.h"

#include <utility>

namespace shirabe::experiment {

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

Proposer::Proposer(int threads) {
  for (int i = 0; i < threads; ++i) {
    threads_.emplace_back([this](std::stop_token stop) { Work(stop); });
  }
}

Proposer::~Proposer() {
  for (std::jthread& thread : threads_) thread.request_stop();
  changed_.notify_all();
}

void Proposer::Submit(std::shared_ptr<Ticket> ticket) {  // shared: see the header
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
