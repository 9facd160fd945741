#include "suggestion/processor_turn.h"

#include <utility>

namespace shirabe::suggestion {
namespace {

thread_local ProcessorTurn* current_turn = nullptr;

}  // namespace

ProcessorTurn::ProcessorTurn(std::function<void()> give_back, std::function<void()> get_again)
    : give_back_(std::move(give_back)),
      get_again_(std::move(get_again)),
      outer_(std::exchange(current_turn, this)) {}

ProcessorTurn::~ProcessorTurn() { current_turn = outer_; }

// Within it there is none to lend.
LentTurn::LentTurn() : turn_(std::exchange(current_turn, nullptr)) {
  if (turn_ != nullptr) turn_->give_back_();
}

LentTurn::~LentTurn() {
  if (turn_ != nullptr) turn_->get_again_();
  current_turn = turn_;
}

}  // namespace shirabe::suggestion
