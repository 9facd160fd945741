// Pages of lists: filter, order and page tokens as query parameters, which mean what --filter and
// --sort-by mean on the command line. Used by the handlers. Pure functions, any thread.
#pragma once

#include <string>
#include <vector>

#include "client/selection.h"
#include "service/http_body.h"
#include "service/http_errors.h"
#include "service/routes.h"

namespace shirabe::service {

inline constexpr int64_t kUsualPage = 500;
inline constexpr int64_t kLargestPage = 10'000;

// pageSize, pageToken; with `selecting` also filter and sort.
std::vector<Parameter> PageParameters(bool selecting);

// Where the last page ended: the number of a trial, the id of an event, or a place in an order.
// The token is opaque to callers: only what was handed out is read back.
std::string PageToken(int64_t after);
// 0 without one. kInvalidArgument if it is none of ours.
StatusOr<int64_t> ReadPageToken(const Call& call);

// A part of a list, as it is sent. Whether more follows is said by `next`, which the next page's
// token is made of.
struct Page {
  std::vector<Json> items;
  int64_t next = 0;  // 0 = this is the last
};
HttpReply PageReply(Page page, int64_t revision);

// The records [token, token + pageSize) of a list in memory, as JSON.
template <class Record, class ToJson>
StatusOr<Page> SlicePage(const Call& call, const std::vector<Record>& records,
                         const ToJson& to_json) {
  ASSIGN_OR_RETURN(const int64_t begin, ReadPageToken(call));
  const int64_t size = call.Integer("pageSize", kUsualPage);
  const auto count = static_cast<int64_t>(records.size());
  Page page;
  for (int64_t i = begin; i < count && i < begin + size; ++i) {
    page.items.push_back(to_json(records[i]));
  }
  if (begin + size < count) page.next = begin + size;
  return page;
}

// The filter and order of a call. kInvalidArgument, naming the parameter, if they are not right.
template <class Record>
StatusOr<client::Selection<Record>> SelectionOf(const Call& call,
                                                const client::Fields<Record>& fields) {
  auto selection =
      client::Selection<Record>::Create(fields, call.Text("filter"), call.Text("sort"));
  if (selection.ok()) return selection;
  // Which of the two it is shows in trying them apart.
  const bool filter = !client::Selection<Record>::Create(fields, call.Text("filter"), "").ok();
  return BadField(filter ? "filter" : "sort", Message(selection.status()));
}

}  // namespace shirabe::service
