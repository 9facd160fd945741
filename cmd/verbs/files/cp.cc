// cp: what a trial has left, its newest checkpoint or its outputs, into a folder of the caller's.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "artifacts/retries.h"
#include "base/open_beneath.h"
#include "base/registry.h"
#include "client/wire_format.h"
#include "cmd/session.h"
#include "cmd/terminal.h"
#include "cmd/verb.h"
#include "cmd/verb_flags.h"
#include "cmd/verbs/files/download.h"
#include "trial/checkpoint/checkpoint_copy.h"
#include "trial/checkpoint/checkpoint_folder.h"
#include "trial/checkpoint/checkpoint_store.h"

namespace shirabe::cmd {
namespace {

struct CopyWish {
  TrialKey trial;
  bool outputs = false;  // else a checkpoint
  std::optional<int64_t> step;
  std::string to;
};

StatusOr<CopyWish> ReadWish(const std::string& from, const std::string& to, const std::string& ns) {
  CopyWish wish;
  std::string trial = from;
  wish.outputs = absl::EndsWith(from, "/output");
  for (const char* part : {"/output", "/checkpoint"}) {
    if (absl::EndsWith(trial, part)) trial.resize(trial.size() - std::string(part).size());
  }
  ASSIGN_OR_RETURN(wish.trial, TrialArgument(trial, ns));
  wish.to = std::filesystem::absolute(to).lexically_normal().string();
  while (wish.to.size() > 1 && wish.to.back() == '/') wish.to.pop_back();
  struct stat info;
  if (lstat(wish.to.c_str(), &info) != 0) return wish;
  return absl::AlreadyExistsError(wish.to + " is there already: name a folder that is not");
}

// The newest that is there, or that of a step.
StatusOr<v1::Checkpoint> ChooseCheckpoint(client::Client& client, const CopyWish& wish) {
  ASSIGN_OR_RETURN(const auto checkpoints, client.ListCheckpoints(wish.trial));
  const v1::Checkpoint* chosen = nullptr;
  for (const v1::Checkpoint& one : checkpoints) {
    if (!one.gone().empty() || (wish.step && one.step() != *wish.step)) continue;
    const bool newer = chosen == nullptr || one.step() > chosen->step() ||
                       (one.step() == chosen->step() && one.attempt() > chosen->attempt());
    if (newer) chosen = &one;
  }
  if (chosen != nullptr) return *chosen;
  return absl::NotFoundError(
      absl::StrCat("trial ", TrialName(wish.trial), " has no checkpoint",
                   wish.step ? absl::StrCat(" at step ", *wish.step) : std::string(),
                   " (shirabe describe trial ", TrialName(wish.trial), " lists them)"));
}

// From the store that the experiment names.
Status FetchCopy(const v1::Checkpoint& checkpoint, const v1::ArtifactPolicy& policy,
                 const StoreTablePtr& stores, const std::string& to) {
  const Status known = stores->Check(policy.store(), checkpoint.namespace_());
  if (!known.ok()) return absl::NotFoundError(Message(known));
  ASSIGN_OR_RETURN(const auto store, stores->Find(policy.store(), checkpoint.namespace_()));
  artifacts::RetryingStore retrying(store.get(), {});
  return Prefix("store " + policy.store(),
                trial::CopyIn(checkpoint, to, {&retrying, policy.prefix()}));
}

Status CopyCheckpoint(client::Client& client, const CopyWish& wish, const trial::FileLayout& layout,
                      const StoreTablePtr& stores) {
  ASSIGN_OR_RETURN(const v1::Checkpoint checkpoint, ChooseCheckpoint(client, wish));
  const Status local = trial::CheckpointStore(&layout).Export(checkpoint, wish.to);
  if (!absl::IsNotFound(local) && !absl::IsDataLoss(local)) return local;
  ASSIGN_OR_RETURN(const auto experiment, client.GetExperiment(wish.trial.experiment));
  const v1::ArtifactPolicy& policy = experiment.spec().shirabe().artifacts();
  const std::string what = absl::StrCat("the checkpoint at step ", checkpoint.step());
  if (!policy.checkpoints()) return Prefix(what, local);
  const Status fetched = FetchCopy(checkpoint, policy, stores, wish.to);
  return Prefix(what + ": on this machine " + Message(local), fetched);
}

// Regular files only, and whole or not at all.
Status CopyFiles(trial::FileTree& tree, const std::string& staging) {
  ASSIGN_OR_RETURN(const std::vector<std::string> files, tree.Files(trial::kMaxFiles));
  for (const std::string& path : files) {
    ASSIGN_OR_RETURN(const Fd from, tree.OpenFile(path));
    const std::string whole = absl::StrCat(staging, "/", path);
    RETURN_IF_ERROR(MakeDirs(whole.substr(0, whole.rfind('/'))));
    const Fd to(open(whole.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!to.valid()) return ErrnoStatus("cannot create " + whole, errno);
    RETURN_IF_ERROR(trial::CopyAndHash({from.get(), to.get(), {}, path}).status());
  }
  return absl::OkStatus();
}

// From the store, where the trial's outputs were copied to one.
Status FetchOutputs(client::Client& client, const CopyWish& wish, const StoreTablePtr& stores) {
  ASSIGN_OR_RETURN(const v1::Trial trial, client.GetTrial(wish.trial));
  if (trial.outputs().digest().empty()) return absl::NotFoundError("there is no copy of them");
  ASSIGN_OR_RETURN(const auto experiment, client.GetExperiment(wish.trial.experiment));
  RETURN_IF_ERROR(
      FetchCopy(trial.outputs(), experiment.spec().shirabe().artifacts(), stores, wish.to));
  // It has done its work, and is none of the program's files.
  if (unlink(absl::StrCat(wish.to, "/", trial::kManifestName).c_str()) == 0) {
    return absl::OkStatus();
  }
  return ErrnoStatus(absl::StrCat("cannot remove ", wish.to, "/", trial::kManifestName), errno);
}

Status CopyOutputs(client::Client& client, const CopyWish& wish, const trial::FileLayout& layout,
                   const StoreTablePtr& stores) {
  const std::string dir = layout.Paths({wish.trial, 1}).output_dir;
  auto tree = trial::FileTree::Open(AT_FDCWD, dir, "its outputs");
  if (absl::IsNotFound(tree.status())) {
    return Prefix(
        "trial " + TrialName(wish.trial) + " has no outputs here: " + dir + " is not there",
        FetchOutputs(client, wish, stores));
  }
  RETURN_IF_ERROR(tree.status());
  const std::string staging = wish.to + ".tmp";
  if (mkdir(staging.c_str(), 0700) != 0) return ErrnoStatus("cannot make " + staging, errno);
  Status status = CopyFiles(*tree, staging);
  if (status.ok() && rename(staging.c_str(), wish.to.c_str()) != 0) {
    status = ErrnoStatus("cannot rename " + staging + " to " + wish.to, errno);
  }
  if (!status.ok()) RemoveAll(staging).IgnoreError();
  return status;
}

Status CopyFromHere(const Globals& globals, const std::vector<std::string>& words,
                    std::optional<int64_t> step) {
  ASSIGN_OR_RETURN(const LocalSession session, OpenLocal(globals, /*read_only=*/true));
  ASSIGN_OR_RETURN(CopyWish wish, ReadWish(words[0], words[1], session.place.ns));
  wish.step = step;
  const trial::FileLayout layout(session.place.home);
  RETURN_IF_ERROR(session.client->GetTrial(wish.trial).status());
  const StoreTablePtr stores = session.client->stores();
  return wish.outputs ? CopyOutputs(*session.client, wish, layout, stores)
                      : CopyCheckpoint(*session.client, wish, layout, stores);
}

// Which may have them itself, or bring them from a store.
Status CopyFromServer(const Globals& globals, const std::vector<std::string>& words,
                      std::optional<int64_t> step) {
  if (!globals.stores.empty()) {
    return UsageError("--stores is of what lies on this machine: a server has its own");
  }
  ASSIGN_OR_RETURN(const Session session, OpenSession(globals, /*read_only=*/true));
  ASSIGN_OR_RETURN(CopyWish wish, ReadWish(words[0], words[1], session.ns));
  wish.step = step;
  RETURN_IF_ERROR(session.client->GetTrial(wish.trial).status());
  v1::FilesRequest request;
  *request.mutable_trial() = client::ToWire(wish.trial);
  if (!wish.outputs) {
    ASSIGN_OR_RETURN(const v1::Checkpoint checkpoint, ChooseCheckpoint(*session.client, wish));
    request.set_attempt(checkpoint.attempt());
    request.set_step(checkpoint.step());
  }
  return Download(*session.client, request, wish.to);
}

}  // namespace

StatusOr<int> CopyOfTrial(const Arguments& arguments) {
  Globals globals;
  std::vector<std::string> words;
  std::optional<int64_t> step;
  Options options(
      "cp EXPERIMENT/N[/checkpoint|/output] DIR",
      "Copies what a trial has left into a new folder: its newest checkpoint, verified, "
      "or its outputs. What is gone on the machine that ran it is brought from the "
      "store that the experiment names (spec.shirabe.artifacts). With a server the "
      "files come from there, and are compared with their SHA-256; where it breaks off, "
      "the same command goes on with what has come (DIR.partial).");
  options.Arguments("EXPERIMENT/N[/checkpoint|/output] DIR", &words, 2, 2);
  options.Number("--step", &step, 1, "the checkpoint of this step");
  AddStores(options, &globals);
  AddGlobals(options, &globals);
  ASSIGN_OR_RETURN(const bool done, ParseAll(options, globals, arguments));
  if (done) return 0;
  if (step && absl::EndsWith(words[0], "/output")) {
    return UsageError("--step is of checkpoints: leave it out");
  }
  ASSIGN_OR_RETURN(const Access access, FindAccessOf(globals));
  RETURN_IF_ERROR(access.server.empty() ? CopyFromHere(globals, words, step)
                                        : CopyFromServer(globals, words, step));
  ProgressLine(absl::StrCat(words[0], " -> ", words[1]));
  return 0;
}

SHIRABE_REGISTER(Verb, {.name = "cp",
                        .group = VerbGroup::kRead,
                        .summary = "copy a trial's checkpoint or outputs into a folder",
                        .completes = CompleteTrials,
                        .run = CopyOfTrial});

}  // namespace shirabe::cmd
