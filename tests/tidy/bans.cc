// Words that may not occur, where, and what to use instead.
#include <re2/re2.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "tests/tidy/rules.h"

namespace shirabe::tidy {
namespace {

enum class Layer { kCode, kText };
enum class Where { kCpp, kCppButTests, kEverything };

struct Ban {
  Layer layer;
  Where where;
  const char* pattern;
  const char* message;
  // Paths that begin with one of these are free, each for a reason given in the table.
  std::vector<std::string> allowed;
};

// Written so that this file does not find itself.
std::vector<Ban> Bans() {
  return {
      {Layer::kCode,
       Where::kCppButTests,
       R"(absl::Now\b|_clock::now\b|\bgettimeofday\b|\bclock_gettime\b|)"
       R"((?:^|[^\w.>:]|std::)time\s*\(|\bGetCurrentTimeNanos\b)",
       "reads a clock: use base/clock",
       // The supervisor is a C program of its own, without base/.
       {"base/clock", "trial/supervisor/"}},
      {Layer::kCode,
       Where::kCppButTests,
       R"(\b(?:u?sleep|nanosleep|clock_nanosleep|absl::SleepFor|sleep_for|sleep_until)\s*\()",
       "sleeps: wait for a condition or a descriptor",
       {"base/clock", "trial/supervisor/"}},
      {Layer::kCode,
       Where::kCppButTests,
       R"(\b[Jj]son::parse\s*\(|\bJsonStringToMessage\b|\bMessageToJsonString\b)",
       "reads JSON without limits: use base/text/json_text",
       {"base/text/json_text", "bench/"}},
      {Layer::kCode,
       Where::kCppButTests,
       R"(\bstd::(?:\w*mutex|\w+_lock|lock_guard|condition_variable\w*)\b)",
       "a lock that the compiler does not check: use base/mutex.h",
       {"base/mutex.h"}},
      {Layer::kCode, Where::kCpp, R"(\bthrow\b)", "throws: return a status", {}},
      {Layer::kCode, Where::kCpp, R"(\bstd::w?s?regex|<regex>)", "std::regex: use RE2", {}},
      {Layer::kCode,
       Where::kCpp,
       R"(\bstd::(?:\w+_distribution|mt19937\w*|random_device|minstd_rand\w*|s?rand|shuffle)\b)",
       "random numbers that differ between machines: use base/rng",
       {"base/rng"}},
      {Layer::kCode,
       Where::kCpp,
       R"(^\s*#\s*(?:if|ifdef|ifndef|elif)\b)",
       "conditional compilation: choose at run time, or by file",
       {}},
      {Layer::kCode, Where::kCpp, R"(\bDISABLED_\w+)", "a disabled test", {}},
      {Layer::kText,
       Where::kCpp,
       R"(^\s*//\s*(?:TEST|TEST_F|TEST_P|TYPED_TEST)\s*\()",
       "a test that is commented out",
       {}},
      {Layer::kText,
       Where::kCppButTests,
       R"re("-a"|"-"\s*(?:\+|,|<<)\s*(?:std::to_string|\w*number)|"SHIRABE_PARAM_)re",
       "builds a name by hand: use base/names",
       {"base/names"}},
  };
}

std::vector<Ban> BannedWords() {
  return {
      {Layer::kText,
       Where::kEverything,
       "\\b(?:TO"
       "DO|FIX"
       "ME|XX"
       "X|HA"
       "CK)\\b",
       "a mark of something left undone: do it, or say in words why not",
       {}},
      {Layer::kText,
       Where::kCppButTests,
       "(?i)\\b(?:who"
       "ever|no"
       "body|some"
       "body|any"
       "body|h"
       "e|h"
       "is|h"
       "im|an"
       "ew)\\b",
       "private register: say it as STYLE.md does",
       // Texts that users read, and two variables.
       {"db/commit_rules.cc", "service/common/authorization.cc",
        "trial/kubernetes/wait_reasons.cc"}},
  };
}

bool Applies(const Ban& ban, const Source& source) {
  const Kind kind = KindOf(source.path, source.text);
  if (ban.where != Where::kEverything && !kind.cpp) return false;
  if (ban.where == Where::kCppButTests && kind.test) return false;
  for (const std::string& prefix : ban.allowed) {
    if (source.path.compare(0, prefix.size(), prefix) == 0) return false;
  }
  return true;
}

bool Matches(const RE2& pattern, std::string_view line) {
  return RE2::PartialMatch(re2::StringPiece(line.data(), line.size()), pattern);
}

void CheckBan(const Ban& ban, const Source& source, Violations& out) {
  const RE2 pattern(ban.pattern);
  const std::string& layer = ban.layer == Layer::kCode ? source.code : source.text;
  for (int n = 1; n <= source.lines(); ++n) {
    if (Matches(pattern, source.Line(layer, n))) out.push_back({source.path, n, ban.message});
  }
}

// Memory has an owner. `new` is for placement, or goes into a unique_ptr on the same line with the
// reason why make_unique cannot; a shared owner needs a reason on its line.
void CheckOwnership(const Source& source, Violations& out) {
  static const RE2 naked_new(R"((?:^|[^\w])new\s+[\w:(])");
  static const RE2 placement(R"(\bnew\s*\([^)]+\))");
  static const RE2 naked_delete(R"(\bdelete\b)");
  static const RE2 declared_delete(R"(=\s*delete\b|operator\s+delete\b)");
  static const RE2 owned(R"(unique_ptr<.*>\s*\w*\(\s*new\b|WrapUnique\(\s*new\b)");
  static const RE2 shared(R"(\bshared_ptr\b)");
  for (int n = 1; n <= source.lines(); ++n) {
    const std::string_view code = source.Line(source.code, n);
    const bool reason =
        source.Line(source.comments, n).find_first_not_of(' ') != std::string_view::npos;
    if (Matches(naked_new, code) && !Matches(placement, code) &&
        !(Matches(owned, code) && reason)) {
      out.push_back({source.path, n, "naked new: use make_unique, or say on the line why not"});
    }
    if (Matches(naked_delete, code) && !Matches(declared_delete, code)) {
      out.push_back({source.path, n, "naked delete: let an owner do it"});
    }
    if (Matches(shared, code) && !reason) {
      out.push_back({source.path, n, "shared_ptr without a reason on its line"});
    }
  }
}

}  // namespace

void CheckBans(const Source& source, Violations& out) {
  static const std::vector<Ban> code = Bans(), words = BannedWords();
  for (const std::vector<Ban>* bans : {&code, &words}) {
    for (const Ban& ban : *bans) {
      if (Applies(ban, source)) CheckBan(ban, source, out);
    }
  }
  const Kind kind = KindOf(source.path, source.text);
  if (kind.cpp && !absl::EndsWith(source.path, ".c")) CheckOwnership(source, out);
}

}  // namespace shirabe::tidy
