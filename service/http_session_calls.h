// How a session has something done elsewhere and hears of it: the templates of its class, for the
// two files that define it (http_session.cc, http_session_reply.cc).
#pragma once

#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>

#include "service/http_session.h"

namespace shirabe::service {

// Calls `then` in the io thread, with the error, unless the connection is closed by then.
template <class Then>
auto Session::Bind(Then then) {
  return [self = shared_from_this(), then](Error error, auto&&...) {
    if (self->state_ != State::kClosed) then(*self, error);
  };
}

// Sends out_, for as long as a reply may take.
template <class Then>
void Session::Write(Then then) {
  Expire(host_.limits.write);
  last_write_ = host_.clock->Monotonic();
  asio::async_write(stream_, asio::buffer(out_), Bind(then));
}

// Runs `call` in a worker, and `then` with its result in the io thread unless the connection is
// closed by then. False, and nothing is run, if there is too much to do.
template <class Call, class Then>
bool Session::RunIn(Workers* workers, Call call, Then then) {
  stream_.lowest().expires_never();
  return workers->Run(reception_.caller, [self = shared_from_this(), call, then]() mutable {
    auto result = call(*self);
    asio::io_context& io = *self->host_.io;
    asio::post(io, [self = std::move(self), result = std::move(result), then]() mutable {
      if (self->state_ != State::kClosed) then(*self, std::move(result));
    });
  });
}

}  // namespace shirabe::service
