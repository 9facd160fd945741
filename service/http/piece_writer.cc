#include "service/http/piece_writer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "service/common/worker_threads.h"
#include "service/http/session_host.h"

namespace shirabe::service {
namespace {

std::string ErrorEvent(const Status& status) {
  return "event: error\ndata: " + ErrorReply(status).body + "\n";
}

}  // namespace

PieceWriter::PieceWriter(const Options& options)
    : options_(options), live_(options.source->live()), timer_(options.connection->executor()) {
  if (live_) ++options_.host->streams;
  options_.host->UpdateGauges();
}

PieceWriter::~PieceWriter() {
  if (live_) --options_.host->streams;
  options_.host->UpdateGauges();
}

Task<bool> PieceWriter::Run() {
  for (;;) {
    const int64_t wakes = options_.host->wakes;
    const std::optional<Piece> piece = co_await Next();
    if (!piece) co_return false;
    std::string text = Framed(*piece);
    if (!text.empty()) {
      options_.connection->Expire(options_.host->limits.write);
      const bool written = co_await options_.connection->Write(std::move(text));
      if (!written) co_return false;
    }
    if (piece->end) co_return true;
    if (piece->text.empty() && wakes == options_.host->wakes) co_await WaitForMore();
  }
}

Task<std::optional<Piece>> PieceWriter::Next() {
  if (options_.connection->closed()) co_return std::nullopt;
  if (options_.host->draining && live_) co_return Piece{.end = true};
  if (std::exchange(silent_, false)) co_return Piece{.text = ": still here\n\n"};
  options_.connection->Expire(absl::InfiniteDuration());
  Workers& workers = options_.source->slow() ? *options_.host->slow : *options_.host->quick;
  auto next =
      RunIn(workers, *options_.caller, [source = options_.source] { return source->Next(); });
  std::optional<StatusOr<Piece>> piece = co_await std::move(next);
  // A follower that is cut off comes again, and goes on where it was.
  if (!piece || options_.connection->closed()) co_return std::nullopt;
  if (piece->ok()) co_return std::move(**piece);
  if (!live_) co_return std::nullopt;
  co_return Piece{.text = ErrorEvent(piece->status()), .end = true};
}

absl::Duration PieceWriter::Silence() const {
  return options_.host->clock->Monotonic() - options_.connection->last_write();
}

Task<void> PieceWriter::WaitForMore() {
  if (options_.host->draining) co_return;
  if (live_) options_.owner->WatchForEnd();
  const absl::Duration heartbeat = options_.host->limits.heartbeat;
  const absl::Duration beat = std::max(absl::ZeroDuration(), heartbeat - Silence());
  timer_.expires_after(ToTimer(std::min(beat, options_.source->Poll())));
  waits_ = true;
  co_await timer_.async_wait(kAwaited);
  const bool woken = !std::exchange(waits_, false);
  silent_ = live_ && !woken && Silence() >= heartbeat;
}

void PieceWriter::Wake() {
  if (std::exchange(waits_, false)) timer_.cancel();
}

std::string PieceWriter::Framed(const Piece& piece) const {
  if (!options_.chunked) return piece.text;
  std::string text;
  if (!piece.text.empty()) {
    absl::StrAppend(&text, absl::Hex(piece.text.size()), "\r\n", piece.text, "\r\n");
  }
  if (piece.end) text += "0\r\n\r\n";
  return text;
}

}  // namespace shirabe::service
