// The dashboard: its files as they were built in, a list of experiments that needs no JavaScript,
// and what the caller may do. The files hold no data, so anyone who reaches the port gets them;
// what they show comes from the other routes, under the caller's own rights.
#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/printable.h"
#include "base/sha256.h"
#include "client/records/enum_words.h"
#include "proto/shirabe/v1/page.pb.h"
#include "service/http/etag.h"
#include "service/http/http_body.h"
#include "service/http/http_message.h"
#include "service/http/route_table.h"
#include "service/http/web_files.h"
#include "view/record_json.h"
#include "view/record_rows.h"

namespace shirabe::service {
namespace {

constexpr char kHtml[] = "text/html; charset=utf-8";
constexpr char kForever[] = "public, max-age=31536000, immutable";
constexpr char kAskAgain[] = "no-cache";
constexpr size_t kListedExperiments = 500;

// Nothing is loaded from elsewhere, no text becomes a script or a style, no page frames this one.
constexpr char kPolicy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'";

void AddPageHeaders(HttpReply& reply, const std::string& policy, const char* caching) {
  reply.headers.emplace_back("Content-Security-Policy", policy);
  reply.headers.emplace_back("Referrer-Policy", "no-referrer");
  reply.headers.emplace_back("Cross-Origin-Opener-Policy", "same-origin");
  reply.headers.emplace_back("Cross-Origin-Resource-Policy", "same-origin");
  reply.headers.emplace_back("Cache-Control", caching);
}

// "br", but for "br;q=0".
bool AcceptsBrotli(const HttpRequest& request) {
  for (const absl::string_view item : absl::StrSplit(request.Header("accept-encoding"), ',')) {
    const std::vector<absl::string_view> parts = absl::StrSplit(item, ';');
    if (absl::StripAsciiWhitespace(parts[0]) != "br") continue;
    double quality = 1;
    for (const absl::string_view part : parts) {
      absl::string_view value = absl::StripAsciiWhitespace(part);
      if (absl::ConsumePrefix(&value, "q=") && !absl::SimpleAtod(value, &quality)) return false;
    }
    return quality > 0;
  }
  return false;
}

HttpReply FileReply(const HttpRequest& request, const WebFile& file, const char* caching) {
  const std::string tag = EtagOf(std::string(file.sha256.substr(0, 32)));
  HttpReply reply{.type = std::string(file.type)};
  AddPageHeaders(reply, kPolicy, caching);
  reply.headers.emplace_back("ETag", tag);
  reply.headers.emplace_back("Vary", "Accept-Encoding");
  if (IsKnown(request, tag)) {
    reply.status = 304;
    reply.type = "";
    return reply;
  }
  const bool brotli = !file.brotli.empty() && AcceptsBrotli(request);
  if (brotli) reply.headers.emplace_back("Content-Encoding", "br");
  reply.body = std::string(brotli ? file.brotli : file.bytes);
  return reply;
}

// ---- the list that needs no JavaScript ---------------------------------------------------------

constexpr char kStyle[] =
    "body{font:16px/1.5 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem;"
    "color-scheme:light dark}table{border-collapse:collapse;width:100%}"
    "th,td{text-align:left;padding:.35rem .75rem .35rem 0;border-bottom:1px solid #8886}"
    "code{font:.9em ui-monospace,monospace}";

std::string Escaped(const std::string& text) {
  std::string out;
  for (const char c : Printable(text)) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
  }
  return out;
}

std::string CellsHtml(const char* tag, const view::Cells& cells) {
  std::string html = "<tr>";
  for (const std::string& cell : cells) absl::StrAppend(&html, "<", tag, ">", Escaped(cell));
  return html + "</tr>\n";
}

std::string TableHtml(const std::vector<v1::Experiment>& experiments) {
  if (experiments.empty()) {
    return "<p>No experiments yet. <code>shirabe run -f EXPERIMENT.yaml</code> makes one.</p>\n";
  }
  std::string html = "<table><caption>Experiments and their best trials</caption>\n<thead>" +
                     CellsHtml("th scope=col", {"Namespace", "Name", "State", "Trials", "Best"}) +
                     "</thead>\n<tbody>\n";
  const size_t shown = std::min(experiments.size(), kListedExperiments);
  for (size_t i = 0; i < shown; ++i) {
    const v1::Experiment& experiment = experiments[i];
    html += CellsHtml("td", {experiment.metadata().namespace_(), experiment.metadata().name(),
                             client::StateWord(experiment), view::TrialsCell(experiment),
                             view::BestCell(experiment)});
  }
  html += "</tbody></table>\n";
  if (shown < experiments.size()) {
    absl::StrAppend(&html, "<p>", shown, " of ", experiments.size(),
                    " shown; <code>shirabe get experiments</code> shows all.</p>\n");
  }
  return html;
}

// What the caller may see, or why that is nothing.
std::string ListHtml(Call& call) {
  auto principal =
      call.context.tokens->Check(call.request.Header("authorization"), call.request.peer);
  if (!principal.ok()) {
    return "<p>This server asks for a token, which a page without JavaScript cannot show. Use "
           "<code>shirabe get experiments --server HOST:PORT --token-file FILE</code>.</p>\n";
  }
  const std::string ns = principal->ns;
  const auto guarded = Guard(*call.context.client, *std::move(principal), call.context.rights);
  auto experiments = guarded->ListExperiments(ns);
  if (!experiments.ok()) return "<p>" + Escaped(Message(experiments.status())) + "</p>\n";
  return TableHtml(*experiments);
}

std::string PlainHtml(Call& call) {
  constexpr char kHow[] =
      "<p>This program was built without the dashboard. With a Node 18 or later in the PATH "
      "(<code>deploy/setup.sh web</code> installs one), build it again; or configure it with "
      "<code>-DSHIRABE_WEB_DIR=DIR</code>, the files of a release.</p>\n";
  return absl::StrCat(
      "<!doctype html>\n<html lang=en><meta charset=utf-8><title>Shirabe</title>\n"
      "<meta name=viewport content=\"width=device-width\"><style>",
      kStyle, "</style>\n<h1>Shirabe</h1>\n", ListHtml(call),
      FindWebFile("index.html") == nullptr ? kHow : "<p><a href=\"./\">Dashboard</a></p>\n",
      "</html>\n");
}

StatusOr<HttpReply> PlainList(Call& call) {
  static const std::string policy = [] {
    const std::string digest = absl::HexStringToBytes(HexSha256(kStyle));
    return absl::StrCat("default-src 'none'; style-src 'sha256-", absl::Base64Escape(digest),
                        "'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
  }();
  HttpReply reply{.type = kHtml, .body = PlainHtml(call)};
  AddPageHeaders(reply, policy, "no-store");
  return reply;
}

// ---- the dashboard -----------------------------------------------------------------------------

// Its links are relative, so its own address must end in a slash: /base is sent to /base/.
StatusOr<HttpReply> Dashboard(Call& call) {
  const std::string& base = call.context.base_path;
  if (!base.empty() && call.request.target == base) {
    HttpReply moved{.status = 308, .type = ""};
    moved.headers.emplace_back("Location", base + "/");
    return moved;
  }
  const WebFile* index = FindWebFile("index.html");
  if (index == nullptr) return PlainList(call);
  return FileReply(call.request, *index, kAskAgain);
}

StatusOr<HttpReply> Asset(Call& call) {
  const WebFile* file = FindWebFile(call.Text("file"));
  if (file == nullptr || absl::EndsWith(call.Text("file"), ".html")) {
    return absl::NotFoundError("there is no file " + call.Text("file") +
                               " of the dashboard here: load the page again");
  }
  return FileReply(call.request, *file, kForever);
}

StatusOr<HttpReply> GetRights(Call& call) {
  v1::RightsRequest request;
  request.set_namespace_(call.Text("namespace"));
  if (const Status valid = ValidateNamespace(request.namespace_());
      !request.namespace_().empty() && !valid.ok()) {
    return BadField("namespace", Message(valid));
  }
  ASSIGN_OR_RETURN(const auto rights, call.client->Get<v1::CallerRights>("GetRights", request));
  return JsonReply({{"name", rights.name()},
                    {"namespace", rights.namespace_()},
                    {"read", rights.read()},
                    {"create", rights.create()},
                    {"change", rights.change()},
                    {"delete", rights.delete_()}});
}

// Of one that has mistakes too, as far as it could be read: a form is filled with it.
StatusOr<HttpReply> Parse(Call& call) {
  const experiment::ParsedExperiment parsed = ParseOne(call.request.body);
  Json read = view::ExperimentJson(parsed.experiment);
  read.erase("status");
  return JsonReply({{"valid", !experiment::HasErrors(parsed.findings)},
                    {"findings", FindingsJson(parsed.findings)},
                    {"experiment", std::move(read)}});
}

Route ForAnyone(Route route) {
  route.method = "GET";
  route.rights = MakeRights(v1::Rights::ANYONE);
  return route;
}

std::vector<Route> PageRoutes() {
  return {
      ForAnyone({.path = "/",
                 .id = "dashboard",
                 .summary = "The dashboard, for a browser",
                 .results = {{.type = "text/html"},
                             {.status = 304, .type = ""},
                             {.status = 308, .type = ""}},
                 .slow = true,
                 .handle = Dashboard}),
      ForAnyone({.path = "/list",
                 .id = "plainList",
                 .summary = "Experiments and their best trials, for a browser without JavaScript",
                 .results = {{.type = "text/html"}},
                 .slow = true,
                 .handle = PlainList}),
      ForAnyone({.path = "/assets/{file}",
                 .id = "dashboardFile",
                 .summary = "A file of the dashboard, whose name changes with its content",
                 .results = {{.type = "text/javascript"},
                             {.type = "text/css"},
                             {.type = "image/svg+xml"},
                             {.status = 304, .type = ""}},
                 .handle = Asset}),
      {.method = "POST",
       .path = "/api/v1/parse",
       .id = "parse",
       .rights = MakeRights(v1::Rights::CALLERS),
       .summary = "Reads an experiment, YAML or JSON, without storing it: gives it back as JSON, "
                  "with all that is wrong with it",
       .request = v1::Experiment::descriptor(),
       .results = {{.body = v1::http::Parsed::descriptor()}},
       .handle = Parse},
      {.method = "GET",
       .path = "/api/v1/rights",
       .id = "getRights",
       .rpc = "GetRights",
       .summary = "What the caller may do in a namespace, so that a page offers nothing else",
       .parameters = {{.name = "namespace", .help = "the namespace; by default the caller's own"}},
       .results = {{.body = v1::CallerRights::descriptor()}},
       .slow = true,
       .handle = GetRights},
  };
}

}  // namespace

SHIRABE_REGISTER(RouteGroup, {.name = "page", .routes = PageRoutes});

}  // namespace shirabe::service
