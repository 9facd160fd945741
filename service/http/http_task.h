// Coroutines of the thread that serves the connections: what a connection does is written one step
// after the other, and each step may wait. Used by the HTTP server and what its sessions are made
// of. A Task is awaited by another, or spawned by the server; all of them run in the one thread of
// their io_context, whatever ends them elsewhere. What a Task is given by reference outlives it.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/error_code.hpp>

#include "absl/time/time.h"
#include "service/common/worker_threads.h"

namespace shirabe::service {

using IoError = boost::system::error_code;
using IoExecutor = boost::asio::io_context::executor_type;
using IoTimer = boost::asio::basic_waitable_timer<
    std::chrono::steady_clock, boost::asio::wait_traits<std::chrono::steady_clock>, IoExecutor>;

template <class Result>
using Task = boost::asio::awaitable<Result, IoExecutor>;

// For an operation of Asio that a Task awaits: what comes is a tuple, and its error is not thrown.
// Deferred, since one with use_awaitable has a coroutine of its own, and most connections do
// nothing but wait to read.
inline constexpr boost::asio::as_tuple_t<boost::asio::deferred_t> kAwaited{boost::asio::deferred};

inline std::chrono::microseconds ToTimer(absl::Duration time) {
  return absl::ToChronoMicroseconds(time);
}

// Goes on with a Task that waits, with a result: called once, from any thread. It can be copied, as
// what a std::function holds must be. If it is never called, the Task never goes on.
template <class Result>
class Resumption {
 public:
  template <class Handler>
  explicit Resumption(Handler handler)
      : waiting_(std::make_shared<Handler>(std::move(handler))), resume_(&Resume<Handler>) {}
  void operator()(Result result) const { resume_(waiting_.get(), std::move(result)); }

 private:
  template <class Handler>
  static void Resume(void* waiting, Result result) {
    auto& handler = *static_cast<Handler*>(waiting);
    const auto executor = boost::asio::get_associated_executor(handler);
    boost::asio::post(executor, [task = std::move(handler), came = std::move(result)]() mutable {
      std::move(task)(std::move(came));
    });
  }

  std::shared_ptr<void> waiting_;  // shared: by the copies; the handler
  void (*resume_)(void* waiting, Result result);
};

// Waits until what `begin` is given, a Resumption<Result>, is called.
template <class Result, class Begin>
Task<Result> Await(Begin begin) {
  const boost::asio::use_awaitable_t<IoExecutor> token;
  return boost::asio::async_initiate<const boost::asio::use_awaitable_t<IoExecutor>, void(Result)>(
      [begin = std::move(begin)](auto handler) mutable {
        begin(Resumption<Result>(std::move(handler)));
      },
      token);
}

// What `call` returns in a worker, where it runs on behalf of this caller, whose name outlives the
// wait; nothing, and it is not run, if there is too much to do.
template <class Call>
auto RunIn(Workers& workers, const std::string& caller, Call call) {
  using Returned = std::optional<std::invoke_result_t<Call&>>;
  return Await<Returned>(
      [&workers, &caller, call = std::move(call)](const Resumption<Returned>& resume) mutable {
        const bool taken =
            workers.Run(caller, [resume, call = std::move(call)]() mutable { resume(call()); });
        if (!taken) resume(std::nullopt);
      });
}

}  // namespace shirabe::service
