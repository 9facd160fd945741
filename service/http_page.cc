#include "service/http_page.h"

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/json_text.h"
#include "base/number.h"

namespace shirabe::service {
namespace {

constexpr char kTokenPrefix[] = "p";
constexpr char kPositionPrefix[] = "k";

Status NotOurs() {
  return BadField("pageToken", "is none of ours: take nextPageToken of the page before");
}

// A number as text, for a token in JSON must hold infinities, too.
Json OrderJson(const client::FieldValue& order) {
  if (const double* number = std::get_if<double>(&order))
    return Json::array({FormatNumber(*number)});
  if (const std::string* text = std::get_if<std::string>(&order)) return *text;
  return nullptr;
}

std::optional<client::FieldValue> ReadOrder(const Json& json) {
  if (json.is_null()) return client::FieldValue();
  if (json.is_string()) return json.get<std::string>();
  if (!json.is_array() || json.size() != 1 || !json[0].is_string()) return std::nullopt;
  const auto number = ParseNumber(json[0].get<std::string>());
  if (!number) return std::nullopt;
  return *number;
}

}  // namespace

std::vector<Parameter> PageParameters(bool selecting) {
  std::vector<Parameter> parameters = {
      {.name = "pageSize",
       .help = "most items of one reply",
       .type = Parameter::Type::kInteger,
       .min = 1,
       .max = kLargestPage,
       .default_value = std::to_string(kUsualPage)},
      {.name = "pageToken", .help = "nextPageToken of the page before"}};
  if (!selecting) return parameters;
  parameters.push_back({.name = "filter",
                        .help = "conditions parted by commas, as of --filter: "
                                "state=Failed,param.lr<1e-3"});
  parameters.push_back(
      {.name = "sort", .help = "a field to order by, as of --sort-by; ~ before it turns it round"});
  return parameters;
}

std::string PageToken(int64_t after) { return absl::StrCat(kTokenPrefix, after); }

StatusOr<int64_t> ReadPageToken(const Call& call) {
  const std::string token = call.Text("pageToken");
  if (token.empty()) return 0;
  int64_t after = 0;
  const bool read = token.rfind(kTokenPrefix, 0) == 0 &&
                    absl::SimpleAtoi(token.substr(1), &after) && after >= 0 &&
                    PageToken(after) == token;
  if (read) return after;
  return NotOurs();
}

StatusOr<PagePosition> ReadPosition(const Call& call) {
  const std::string sort = call.Text("sort");
  PagePosition position{.last = std::nullopt,
                        .time = absl::FromUnixMicros(absl::ToUnixMicros(call.context.clock->Now())),
                        .descending = sort.rfind('~', 0) == 0};
  const std::string token = call.Text("pageToken");
  if (token.empty()) return position;
  if (token.rfind(kTokenPrefix, 0) == 0) {
    return BadField("pageToken",
                    "is of another list, or of an older server, which counted places: begin again "
                    "without it");
  }
  std::string text;
  if (token.rfind(kPositionPrefix, 0) != 0 ||
      !absl::WebSafeBase64Unescape(token.substr(1), &text)) {
    return NotOurs();
  }
  const Json json = ReadJsonOrDiscarded<Json>(text, kRequestJson);
  const bool shaped = json.is_array() && json.size() == 4 && json[0].is_string() &&
                      json[1].is_number_integer() && json[3].is_array();
  const auto order = shaped ? ReadOrder(json[2]) : std::nullopt;
  if (!order) return NotOurs();
  if (json[0].get<std::string>() != sort) {
    return BadField("pageToken",
                    "is of the list in another order (sort=" + json[0].get<std::string>() +
                        "): ask for all pages in the same one");
  }
  position.time = absl::FromUnixMicros(json[1].get<int64_t>());
  position.last = PagePlace{*order, json[3]};
  return position;
}

std::string PositionToken(const Call& call, const PagePosition& position, const PagePlace& last) {
  const Json json = Json::array(
      {call.Text("sort"), absl::ToUnixMicros(position.time), OrderJson(last.order), last.key});
  return absl::StrCat(kPositionPrefix, absl::WebSafeBase64Escape(client::PrintJsonLine(json)));
}

bool IsAfter(const PagePosition& position, const PagePlace& place) {
  if (!position.last) return true;
  const PagePlace& last = *position.last;
  if (client::Before(last.order, place.order, position.descending)) return true;
  if (client::Before(place.order, last.order, position.descending)) return false;
  return last.key < place.key;
}

HttpReply PageReply(Page page, int64_t revision) {
  Json list = ListJson(std::move(page.items));
  if (!page.next.empty()) list["nextPageToken"] = page.next;
  list["revision"] = revision;
  return JsonReply(list);
}

}  // namespace shirabe::service
