#include "service/http_page.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace shirabe::service {
namespace {

constexpr char kTokenPrefix[] = "p";

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
  return BadField("pageToken", "is none of ours: take nextPageToken of the page before");
}

HttpReply PageReply(Page page, int64_t revision) {
  Json list = ListJson(std::move(page.items));
  if (page.next > 0) list["nextPageToken"] = PageToken(page.next);
  list["revision"] = revision;
  return JsonReply(list);
}

}  // namespace shirabe::service
