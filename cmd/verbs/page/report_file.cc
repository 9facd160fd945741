#include "cmd/verbs/page/report_file.h"

#include <zlib.h>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/sha256.h"
#include "service/http/web_files.h"

namespace shirabe::cmd {
namespace {

constexpr int kReportFormat = 1;
constexpr char kPlaceOfData[] = "{{report}}";

const service::WebFile* ReportPage() { return service::FindWebFile("report.html"); }

StatusOr<std::string> Gzip(const std::string& bytes) {
  constexpr int kGzipWindow = 15 + 16;
  constexpr int kMemoryLevel = 8;
  z_stream stream = {};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow, kMemoryLevel,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    return absl::ResourceExhaustedError("no memory to compress the report");
  }
  std::string out(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int end = deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  if (end != Z_STREAM_END) return absl::InternalError(absl::StrCat("zlib answered ", end));
  return out;
}

// JSON without the one character by which HTML would see an end.
std::string ForHtml(const view::Json& tree) {
  return absl::StrReplaceAll(view::PrintJsonLine(tree), {{"<", "\\u003c"}});
}

}  // namespace

Status CheckReportPage() {
  if (ReportPage() != nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "this program was built without the dashboard, which a report is made of: with a Node 18 or "
      "later in the PATH (deploy/setup.sh web installs one) build it again, or configure it with "
      "-DSHIRABE_WEB_DIR=DIR, the files of a release");
}

Status ReportFile::Add(const Reply& reply) {
  const auto [known, is_new] = known_.try_emplace(HexSha256(reply.body), bodies_.size());
  if (is_new) {
    ASSIGN_OR_RETURN(const std::string compressed, Gzip(reply.body));
    bodies_.push_back(absl::Base64Escape(compressed));
  }
  replies_.push_back(view::Json::array({reply.path, reply.type, known->second}));
  return absl::OkStatus();
}

StatusOr<std::string> ReportFile::Finish(const ReportFacts& facts) const {
  RETURN_IF_ERROR(CheckReportPage());
  const absl::string_view page(ReportPage()->bytes.data(), ReportPage()->bytes.size());
  const size_t place = page.find(kPlaceOfData);
  if (place == absl::string_view::npos) {
    return absl::InternalError("report.html, which is built in, has no place for data");
  }
  const std::string data = ForHtml({{"format", kReportFormat},
                                    {"made", absl::ToUnixMillis(facts.made)},
                                    {"program", facts.program},
                                    {"namespace", facts.experiment.ns},
                                    {"experiment", facts.experiment.name},
                                    {"trials", facts.trials},
                                    {"trialPages", facts.trial_pages},
                                    {"leftOut", facts.left_out},
                                    {"replies", replies_},
                                    {"bodies", bodies_}});
  return absl::StrCat(page.substr(0, place), data, page.substr(place + strlen(kPlaceOfData)));
}

}  // namespace shirabe::cmd
