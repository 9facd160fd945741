# cmake -DSOURCE=… -DOUTPUT=… -P cmd/commit.cmake: writes the definitions of cmd/commit.h to OUTPUT,
# if they have changed. From git; in an archive that git has made, from the file COMMIT.
set(commit unknown)
set(modified false)
execute_process(COMMAND git --no-optional-locks -C ${SOURCE} rev-parse --show-prefix HEAD
                OUTPUT_VARIABLE answer RESULT_VARIABLE failed ERROR_QUIET)
# An empty prefix: SOURCE is the top of the repository, not a folder of some other one.
if(NOT failed AND answer MATCHES "^\n([0-9a-f]+)\n$")
  set(commit ${CMAKE_MATCH_1})
  execute_process(COMMAND git --no-optional-locks -C ${SOURCE} status --porcelain --untracked-files=no
                  OUTPUT_VARIABLE changes ERROR_QUIET)
  if(changes)
    set(modified true)
  endif()
elseif(EXISTS ${SOURCE}/COMMIT)
  file(READ ${SOURCE}/COMMIT named)
  if(named MATCHES "^([0-9a-f]+) ")
    set(commit ${CMAKE_MATCH_1})
  endif()
endif()
file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT [[#include "cmd/commit.h"

namespace shirabe::cmd {

const char* const kCommit = "@commit@";
const bool kCommitModified = @modified@;

}  // namespace shirabe::cmd
]])
