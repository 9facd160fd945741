// Bodies of requests and replies: text to messages by the tables of the .proto files, JSON to text,
// and lists page by page. Used by the handlers (routes_*.cc). Pure functions, any thread.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "experiment/spec/parse_spec.h"
#include "google/protobuf/message.h"
#include "service/http/http_message.h"
#include "service/http/route_table.h"
#include "view/record_filter.h"
#include "view/record_json.h"

namespace shirabe::service {

using view::Json;

// The body as one of the messages of http.proto: names, types, words and bounds are checked by its
// table. An empty body is an empty mapping.
Status ReadBody(const HttpRequest& request, google::protobuf::Message& message);

// The body as one Experiment, YAML or JSON, with defaults; without a namespace of its own it is in
// `ns`, and kInvalidArgument if it has another. What is only a warning becomes a header. "" allows
// any namespace.
struct ReadExperiment {
  v1::Experiment experiment;
  HttpHeaders warnings;
};
StatusOr<ReadExperiment> ReadExperimentBody(const HttpRequest& request, const std::string& ns);

// The namespace that the metadata of the first document names; "" for none.
std::string NamedNamespace(const std::string& text);

// The findings on a text that is to be one experiment, and that experiment.
experiment::ParsedExperiment ParseOne(const std::string& text);
// {level, field, message, line, column}, each of them.
Json FindingsJson(const std::vector<experiment::Finding>& findings);

HttpReply JsonReply(const Json& body, int status = 200);
// With its generation as the ETag.
HttpReply ExperimentReply(const v1::Experiment& experiment, int status = 200);
// {apiVersion: v1, kind: List, items}, to which the caller may add.
Json ListJson(std::vector<Json> items);

// Pages of lists: filter, order and page tokens as query parameters, which mean what --filter and
// --sort-by mean on the command line. Used by the handlers. Pure functions, any thread.

inline constexpr int64_t kDefaultPageSize = 500;
inline constexpr int64_t kMaxPageSize = 10'000;

// pageSize, pageToken; with `selecting` also filter and sort.
std::vector<Parameter> PageParameters(bool selecting);

// Where the last page ended, by the number of a trial or the id of an event. Tokens are opaque to
// callers: only what was handed out is read back.
std::string PageToken(int64_t after);
// 0 without one. kInvalidArgument if it is none of ours.
StatusOr<int64_t> ReadPageToken(const Call& call);

// Where an item stands in a list in memory: what the list is sorted by, and the item's key, which
// decides between equals. The token of the next page holds the last item's, so that no page skips
// or repeats one because others were made or deleted in between.
struct PageKey {
  view::FieldValue order;
  Json key = Json::array();
};
struct PagePosition {
  std::optional<PageKey> last;  // of the page before; nullopt: this is the first
  absl::Time time;              // of the first page: ages are counted from it on all of them
  bool descending = false;
};
// kInvalidArgument if the token is none of ours, or of a list in another order.
StatusOr<PagePosition> ReadPosition(const Call& call);
std::string PositionToken(const Call& call, const PagePosition& position, const PageKey& last);
bool IsAfter(const PagePosition& position, const PageKey& place);

// A part of a list, as it is sent.
struct Page {
  std::vector<Json> items;
  std::string next;  // the token of the next page; "" = this is the last
};
HttpReply PageReply(Page page, int64_t revision);

// How the items of a list are placed and shown: functions of a record.
template <class ToPlace, class ToJson>
struct PageForm {
  ToPlace to_place;
  ToJson to_json;
};
template <class ToPlace, class ToJson>
PageForm(ToPlace, ToJson) -> PageForm<ToPlace, ToJson>;  // clang 14 does not deduce it

// At most pageSize of the records of a list in memory, which is in order, after the position.
template <class Record, class Form>
Page SlicePage(const Call& call, const PagePosition& position, const std::vector<Record>& records,
               const Form& form) {
  const auto size = static_cast<size_t>(call.Integer("pageSize", kDefaultPageSize));
  Page page;
  PageKey last;
  for (const Record& record : records) {
    PageKey place = form.to_place(record);
    if (!IsAfter(position, place)) continue;
    if (page.items.size() == size) {
      page.next = PositionToken(call, position, last);
      break;
    }
    page.items.push_back(form.to_json(record));
    last = std::move(place);
  }
  return page;
}

// The filter and order of a call. kInvalidArgument, naming the parameter, if they are not right.
template <class Record>
StatusOr<view::Selection<Record>> SelectionOf(const Call& call,
                                              const view::Fields<Record>& fields) {
  auto selection = view::Selection<Record>::Create(fields, call.Text("filter"), call.Text("sort"));
  if (selection.ok()) return selection;
  // Which of the two it is shows in trying them apart.
  const bool filter = !view::Selection<Record>::Create(fields, call.Text("filter"), "").ok();
  return BadField(filter ? "filter" : "sort", Message(selection.status()));
}

}  // namespace shirabe::service
