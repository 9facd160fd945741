// The folder in which programs of Katib's population-based training keep their checkpoint: one path
// for all trials (the setting suggestion_trial_dir), where each finds what its parent has left, and
// writes over it. Behind that path lies a folder beside the attempt's checkpoints: filled, before
// the program starts, from the checkpoint that the attempt goes on from, and moved among its
// checkpoints once the program has ended well, under the step after that one; so it is committed,
// verified and inherited as any other. What a program has written when it is lost counts for
// nothing, since it may not be whole: the next attempt begins with what this one did.
//
// Used by what stands beside the program: the executor `process`, and the containers in a pod.
// Thread-safe for different attempts.
#pragma once

#include <map>
#include <string>

#include "base/names.h"
#include "base/status.h"
#include "trial/attempt_status.h"
#include "trial/file_layout.h"

namespace shirabe::trial {

// Of spec.algorithm.algorithmSettings.
inline constexpr char kKatibFolderSetting[] = "suggestion_trial_dir";

// In AttemptRequest::environment: the path that the program knows. A process of this machine is
// given that of the folder itself, in this variable and wherever its command names the other one.
inline constexpr char kKatibFolderVariable[] = "SHIRABE_SUGGESTION_TRIAL_DIR";

// kInvalidArgument, with the rule, if nothing can be mounted there.
Status CheckKatibPath(const std::string& path);

// Without a '/' at its end; "" if the program knows none.
std::string KatibPath(const std::map<std::string, std::string>& environment);

// Where it lies, beside the checkpoints.
std::string KatibFolder(const AttemptPaths& paths);

// `text` with the folder wherever it names the path, or a file below it.
std::string WithKatibFolder(const std::string& text, const std::string& path,
                            const std::string& folder);

// Makes it, with a copy of what the attempt goes on from, which stands among its checkpoints by
// now; only before the program has started. `open_to_all`: the program may be another user.
Status FillKatibFolder(const FileLayout& layout, const AttemptKey& key, bool open_to_all);

// After the program has ended well. Where there is no such folder, or nothing in it, nothing
// happens, and neither does at a second time.
Status SaveKatibFolder(const FileLayout& layout, const AttemptKey& key);

}  // namespace shirabe::trial
