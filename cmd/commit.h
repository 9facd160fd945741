// The commit of the repository that the program was built from. Written by cmd/commit.cmake
// whenever something is built, so that it is in one small file of the whole program.
#pragma once

namespace shirabe::cmd {

// 40 hexadecimal digits; "unknown" where the sources were in no repository and name none.
extern const char* const kCommit;
// Whether files differed from that commit.
extern const bool kCommitModified;

}  // namespace shirabe::cmd
