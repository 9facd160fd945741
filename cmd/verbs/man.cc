// __man: prints the manual, shirabe(1), for packages; `cmake --install` does it. All of it comes
// from the registered verbs (cmd/verb_flags.h).
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "cmd/terminal.h"
#include "cmd/verb.h"
#include "cmd/verb_flags.h"

namespace shirabe::cmd {
namespace {

constexpr char kAbout[] = R"(.SH NAME
shirabe \- tune hyperparameters
.SH SYNOPSIS
\fBshirabe\fR \fIVERB\fR [\fIARGUMENTS\fR] [\fIOPTIONS\fR]
.SH DESCRIPTION
Reads Katib's Experiment, asks an algorithm for points, runs each of them as a trial that may be
interrupted at any moment, collects its metrics while it runs, and stores everything.
The same verbs work on this machine's store and, with \fB\-\-server\fR, on that of a server.
)";

constexpr char kEnd[] = R"(.SH EXIT STATUS
.TP
0
done
.TP
1
failed
.TP
2
called in a wrong way
.TP
3
not found
.TP
4
exists already, or is in conflict with what happens now
.TP
5
the specification is not valid
.TP
6
denied
.TP
7
not available
.TP
8
the experiment ended without success
.TP
9
the trial that reported should stop now
.TP
124
the time for waiting was over
.TP
130
interrupted
.SH FILES
.TP
\fI$SHIRABE_HOME\fR
the store, and a directory of each trial; without it \fI~/.local/share/shirabe\fR
)";

// "Run on this machine:\n  run   …" as .SS and .TP.
std::string ManVerbs() {
  std::string text;
  for (const VerbGroup group : ListedGroups()) {
    absl::StrAppend(&text, ".SS ", ManText(HeadingOf(group)), "\n");
    for (const std::string& name : VerbNames()) {
      const Verb& verb = *FindVerb(name);
      if (verb.group != group) continue;
      absl::StrAppend(&text, ".TP\n\\fB", ManText(name), "\\fR\n", ManText(verb.summary), "\n");
    }
  }
  return text;
}

StatusOr<int> Man(const Arguments&) {
  Out(absl::StrCat(".TH SHIRABE 1 \"\" \"Shirabe ", SHIRABE_VERSION, "\" \"User Commands\"\n.nh\n",
                   kAbout, ".SH VERBS\n", ManVerbs(), ".SH OPTIONS OF ALL VERBS\n"));
  Globals globals;
  Options common("", "");
  AddGlobals(common, &globals);
  Out(ManOptions(common));
  Out(".SH EACH VERB\n");
  for (const std::string& name : VerbNames()) {
    RETURN_IF_ERROR(FindVerb(name)->run({kManOption}).status());
  }
  Out(kEnd);
  return 0;
}

SHIRABE_REGISTER(Verb, {.name = "__man", .group = VerbGroup::kHidden, .summary = "", .run = Man});

}  // namespace
}  // namespace shirabe::cmd
