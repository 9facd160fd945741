#include "service/http/http_session.h"

#include <exception>
#include <utility>

#include <boost/asio/co_spawn.hpp>

#include "base/log.h"
#include "service/common/server_metrics.h"

namespace shirabe::service {
namespace {

// A library's, at its edge: memory has run out. It ends this connection alone.
void LogFailure(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& error) {
    Log(LogLevel::kError, "a connection failed", {{"why", error.what()}});
  }
}

}  // namespace

HttpReply SessionHost::RefuseConnection() const {
  if (metrics != nullptr) metrics->Add("shirabe_http_connections_refused_total", {});
  return ErrorReply(absl::UnavailableError("there are too many connections already: try again"));
}

void SessionHost::UpdateGauges() const {
  if (metrics == nullptr) return;
  metrics->Set("shirabe_http_connections", {}, static_cast<double>(sessions.size()));
  metrics->Set("shirabe_sse_clients", {}, streams);
}

Session::Session(AnyStream::Socket socket, SessionHost& host, std::string peer)
    : connection_(std::move(socket), host.tls, host.clock), host_(host), peer_(std::move(peer)) {}

void Session::Start(ConnectionTable::ConnectionSlot slot) {
  reserved_ = slot == ConnectionTable::ConnectionSlot::kReserve;
  host_.sessions.insert(shared_from_this());
  host_.table->Enter(this, peer_, slot);
  host_.UpdateGauges();
  const auto on_end = [self = shared_from_this()](const std::exception_ptr& failure) {
    self->Close();
    if (failure) LogFailure(failure);
  };
  asio::co_spawn(connection_.executor(), Run(), on_end);
}

Task<void> Session::Run() {
  connection_.Expire(host_.limits.handshake);
  const bool ready = co_await connection_.Handshake();
  AfterReply after = ready ? AfterReply::kNext : AfterReply::kClose;
  while (after == AfterReply::kNext && !host_.draining) {
    AwaitRequest();
    IoError error;
    while (!error && !BeginExchange()) error = connection_.Take(co_await connection_.Read());
    if (error) {
      // The other side has ended in order, or is silent, gone, or in the middle of a request.
      after = idle_ && error == asio::error::eof ? AfterReply::kEnd : AfterReply::kClose;
    } else {
      after = co_await exchange_->Run();
      exchange_ = nullptr;
    }
  }
  if (after == AfterReply::kClose) co_return;
  idle_ = false;  // the server's end does not cut its reply off
  host_.table->SetConnectionState(this, ConnectionState::kUnknown);
  co_await connection_.Finish();
}

void Session::AwaitRequest() {
  idle_ = true;
  connection_.Shrink();
  host_.table->SetConnectionState(this,
                                  known_ ? ConnectionState::kIdle : ConnectionState::kUnknown);
  connection_.Expire(known_ ? host_.limits.idle : host_.limits.header);
}

bool Session::BeginExchange() {
  const std::string_view received = connection_.received();
  if (!received.empty() && std::exchange(idle_, false)) connection_.Expire(host_.limits.header);
  auto head = ParseHead(
      received, {.header_bytes = host_.limits.header_bytes, .body_bytes = host_.limits.body_bytes});
  if (head.ok() && !*head) return false;
  if (head.ok()) connection_.Consume((*head)->bytes);
  exchange_ = std::make_unique<Exchange>(
      Exchange::Options{.host = &host_,
                        .owner = this,
                        .connection = &connection_,
                        .peer = peer_,
                        .may_stay = !reserved_},
      head.ok() ? StatusOr<RequestHead>(**std::move(head)) : head.status());
  return true;
}

// ---- what happens meanwhile --------------------------------------------------------------------

void Session::BeginWork() {
  if (known_) host_.table->SetConnectionState(this, ConnectionState::kAtWork);
}

void Session::WatchForEnd() {
  if (std::exchange(watched_, true)) return;
  connection_.OnReadable([self = shared_from_this()](bool readable) {
    self->watched_ = false;
    if (readable) self->OnReadable();
  });
}

void Session::OnReadable() {
  if (exchange_ != nullptr && exchange_->EndsWhenReadable()) Close();
}

void Session::Wake() {
  if (exchange_ != nullptr) exchange_->Wake();
}

void Session::Drain() {
  if (idle_) return Close();
  Wake();
}

void Session::Close() {
  if (connection_.closed()) return;
  connection_.Close();
  if (exchange_ != nullptr) exchange_->Abandon();
  host_.table->Leave(this);
  host_.sessions.erase(shared_from_this());
  host_.UpdateGauges();
  if (host_.sessions.empty() && host_.on_last_gone) host_.on_last_gone();
}

}  // namespace shirabe::service
