// The file of a report: the page as it was built (report.html of web/build.mjs: one text, which
// loads nothing and whose policy allows its own script and style only), with replies of the routes
// in it. A reply is compressed and in base64, and equal ones are kept once; paths and texts are
// JSON in which no "<" stands, so that nothing in them ends the element that they are in. The page
// reads it in web/src/report/replies.ts, which knows the same fields. Used by one thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/names.h"
#include "base/status.h"
#include "view/record_json.h"

namespace shirabe::cmd {

struct ReportFacts {
  ExperimentKey experiment;
  absl::Time made;
  std::string program;                // its version
  int64_t trials = 0;                 // of the experiment
  int64_t trial_pages = 0;            // that are in the report
  std::vector<std::string> left_out;  // sentences, for people
};

class ReportFile {
 public:
  struct Reply {
    std::string path;  // as the page asks for it
    std::string type;
    std::string body;
  };
  Status Add(const Reply& reply);
  // kFailedPrecondition, saying how to get one, where the program was built without a page.
  StatusOr<std::string> Finish(const ReportFacts& facts) const;

 private:
  view::Json replies_ = view::Json::array();
  std::vector<std::string> bodies_;      // compressed, in base64
  std::map<std::string, size_t> known_;  // by digest: where in bodies_
};

// kFailedPrecondition as above, before anything is asked.
Status CheckReportPage();

}  // namespace shirabe::cmd
