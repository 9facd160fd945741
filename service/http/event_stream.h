// Replies that are streams of events (Server-Sent Events): who may follow one, and from where it
// begins. Used by the handlers (routes_streams.cc, routes_charts.cc).
#pragma once

#include <cstdint>
#include <memory>

#include "base/status.h"
#include "service/http/http_message.h"
#include "service/http/route_table.h"

namespace shirabe::service {

inline constexpr char kEventStream[] = "text/event-stream";

// Streams of one caller are counted, and its token is checked again and again while it follows:
// 429 for one too many.
StatusOr<HttpReply> Follow(const Call& call, std::unique_ptr<PieceSource> source);

// Where to begin: after the last event seen (Last-Event-ID), or a revision (`after`); else now.
StatusOr<int64_t> FirstRevision(const Call& call);
// The header of that name, and the parameter.
Parameter LastEventId();
Parameter AfterRevision();

}  // namespace shirabe::service
