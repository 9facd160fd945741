// A turn to compute on this machine's processor, of which there are only so many, and what is
// waited for elsewhere meanwhile. Who hands out turns says, in the thread that has one, how to
// give it back and how to get it again; code deep below that waits for another device lends it:
//
//   ProcessorTurn turn(give_back, get_again);      // service/common/suggestion_scheduler.cc
//   { LentTurn lent; …wait for the device… }       // suggestion/accelerator/shared_gpu.cc
//
// So as many as a device takes together wait for it, while others compute. Each thread has its own;
// outside of any turn lending one does nothing.
#pragma once

#include <functional>

namespace shirabe::suggestion {

class ProcessorTurn {
 public:
  ProcessorTurn(std::function<void()> give_back, std::function<void()> get_again);
  ~ProcessorTurn();
  ProcessorTurn(const ProcessorTurn&) = delete;
  ProcessorTurn& operator=(const ProcessorTurn&) = delete;

 private:
  friend class LentTurn;
  const std::function<void()> give_back_, get_again_;
  ProcessorTurn* const outer_;
};

class LentTurn {
 public:
  LentTurn();
  ~LentTurn();
  LentTurn(const LentTurn&) = delete;
  LentTurn& operator=(const LentTurn&) = delete;

 private:
  ProcessorTurn* const turn_;
};

}  // namespace shirabe::suggestion
