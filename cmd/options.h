// The options and arguments of one verb: a thin front of the library that reads them, which throws
// and is slow to compile, so that only options.cc includes it. Targets must outlive Parse. Used by
// one thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/status.h"

namespace shirabe::cmd {

// An option as --help shows it.
struct OptionHelp {
  std::string names;    // -n, --namespace
  std::string metavar;  // "" = it takes no value
  std::string help;
};

class Options {
 public:
  // `usage` is what follows "shirabe", `about` one or more sentences for --help.
  Options(std::string usage, std::string about);
  ~Options();

  // `names` as "-w,--watch"; `help` without a full stop.
  void Flag(const std::string& names, bool* target, const std::string& help);
  // `metavar` is the word for its value in --help: FILE, N.
  void Text(const std::string& names, std::string* target, const std::string& metavar,
            const std::string& help);
  void Texts(const std::string& names, std::vector<std::string>* target, const std::string& metavar,
             const std::string& help);
  // A whole number of at least `least`; the second, of what the records have as an int32.
  void Number(const std::string& names, std::optional<int64_t>* target, int64_t least,
              const std::string& help);
  void Count(const std::string& names, std::optional<int64_t>* target, int64_t least,
             const std::string& help);
  // A finite number of at least `least`.
  void Decimal(const std::string& names, std::optional<double>* target, double least,
               const std::string& help);
  // One of these words.
  void Word(const std::string& names, std::string* target, const std::vector<std::string>& words,
            const std::string& help);
  // Arguments without a dash, at least `least` and at most `most` of them.
  void Arguments(const std::string& metavar, std::vector<std::string>* target, int least, int most);

  // kInvalidArgument, marked as a usage error, for what cannot be read. True if --help was asked
  // for and has been answered on stdout: there is nothing left to do.
  StatusOr<bool> Parse(std::vector<std::string> arguments);

  // --db, --watch, …: for completion.
  std::vector<std::string> Names() const;
  std::string Help() const;
  // The same in pieces, for the manual.
  std::vector<OptionHelp> Describe() const;
  const std::string& usage() const { return usage_; }
  const std::string& about() const { return about_; }

 private:
  struct Parser;  // the library's
  std::string usage_;
  std::string about_;
  std::unique_ptr<Parser> parser_;
};

// A mistake in how the program was called: kInvalidArgument that ends it with code 2.
Status UsageError(const std::string& message);
// The same status as a usage error, if it is kInvalidArgument.
Status AsUsage(const Status& status);
bool IsUsage(const Status& status);

// Durations as people write them: 30s, 10m, 1h30m, 7d; a bare number is seconds. Called by the
// verbs that wait. A pure function.

// `otherwise` for "". A usage error, naming the option, for what is no duration of at least zero.
StatusOr<absl::Duration> ParseDurationOr(const std::string& option, const std::string& text,
                                         absl::Duration otherwise);

}  // namespace shirabe::cmd
