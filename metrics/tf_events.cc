#include "metrics/tf_events.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/sorting.h"
#include "base/timestamp.h"
#include "metrics/attempt_reader.h"
#include "metrics/file_tail.h"
#include "metrics/terminal_text.h"
#include "metrics/tf_event.h"

namespace shirabe::metrics {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kWindowBytes = 1 << 20;
constexpr int kMaxFolderDepth = 8;
constexpr int kMaxEntries =
    20'000;                     // looked at in a folder; others may keep more than events there
constexpr int kMaxFiles = 200;  // each has a place in the cursor

// A tag to look for in one file, and the wanted metric that it is.
struct Target {
  std::string tag;
  std::string metric;
  bool known_elsewhere = false;  // said once a call
};

// `a/b/c` in the folder …/a is the tag b/c as well, and in …/a/b the tag c.
std::vector<Target> TargetsIn(const std::string& folder, const std::vector<std::string>& metrics) {
  std::vector<Target> targets;
  for (const std::string& metric : metrics) {
    targets.push_back({metric, metric});
    for (size_t cut = metric.find('/'); cut != std::string::npos; cut = metric.find('/', cut + 1)) {
      const std::string suffix = "/" + metric.substr(0, cut);
      const bool ends = ("/" + folder).ends_with(suffix);
      if (cut > 0 && ends) targets.push_back({metric.substr(cut + 1), metric});
    }
  }
  return targets;
}

// The folder that the specification names is trusted, what lies below it is not.
std::string TrustedOf(const std::string& root, const std::string& path, const Source& source) {
  const std::string ours = RootOf(source, path);
  return !ours.empty() || path == root ? ours : root;
}

// One file in one call.
class EventReader {
 public:
  EventReader(const std::string& root, const std::string& path, CollectionBuilder& intake)
      : path_(path),
        folder_(fs::path(path).parent_path().lexically_normal().string()),
        place_(fs::path(folder_).lexically_relative(root).string()),
        trusted_(TrustedOf(root, path, intake.source())),
        builder_(intake),
        targets_(TargetsIn(folder_, intake.UnclaimedMetrics())) {}

  Status Read() {
    ASSIGN_OR_RETURN(const std::optional<TailedFile> file, OpenForTail(trusted_, path_));
    if (!file) return absl::OkStatus();
    cursor_ = builder_.CursorOf(path_);
    if (builder_.source().files.copies && !builder_.source().ended) {
      ASSIGN_OR_RETURN(const bool refilled, IsBeingResent(*file, cursor_));
      if (refilled) return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(const bool continued,
                     IsContinued(*file, cursor_, builder_.source().files.copies));
    if (!continued) {
      cursor_ = {};
      cursor_.set_path(path_);
      cursor_.set_inode(file->inode);
    }
    const uint64_t begin = cursor_.offset();
    RETURN_IF_ERROR(ReadOn(*file));
    if (cursor_.offset() != begin) {
      ASSIGN_OR_RETURN(std::string edges, Edges(*file, cursor_));
      cursor_.set_head(std::move(edges));
    }
    builder_.Save(std::move(cursor_));
    return absl::OkStatus();
  }

 private:
  Status ReadOn(const TailedFile& file) {
    uint64_t window = kWindowBytes;
    while (cursor_.offset() < file.size) {
      if (builder_.BytesLeft() <= 0 || builder_.Full()) {
        builder_.RequestMore();
        break;
      }
      available_ = file.size - cursor_.offset();
      ASSIGN_OR_RETURN(const std::string data,
                       ReadAt(file, cursor_.offset(), std::min(window, available_), path_));
      at_end_ = data.size() == available_;
      const size_t taken = HandleRecords(data);
      cursor_.set_offset(cursor_.offset() + taken);
      builder_.CountBytes(static_cast<int64_t>(taken));
      // A record that is larger than the window is read whole, once all of it is there.
      if (taken == 0 && (wanted_ <= window || wanted_ > available_)) break;
      window = std::max(kWindowBytes, wanted_);
    }
    return absl::OkStatus();
  }

  // Returns how many bytes are done with; wanted_ is then what the next record takes, as far as
  // that is known.
  size_t HandleRecords(std::string_view data) {
    size_t at = 0;
    wanted_ = 0;
    while (at < data.size() && !builder_.Full()) {
      const std::string_view rest = data.substr(at);
      if (cursor_.skipping()) {
        const size_t next = FindRecord(rest);
        if (next == std::string_view::npos) return at + Unsearched(rest);
        at += next;
        cursor_.set_skipping(false);
        continue;
      }
      const Record record = RecordAt(rest);
      if (record.state == Record::State::kPartial) return at + HandlePartialRecord(record, at);
      if (MayYetChange(record, rest)) return at;
      if (record.state == Record::State::kBadLength) {
        AddBad(at, "the event file is damaged: a length with a wrong checksum");
        cursor_.set_skipping(true);
        ++at;
        continue;
      }
      HandleRecord(record, at);
      at += record.bytes;
    }
    return at;
  }

  // What need not be searched again: a header may lie across the end.
  size_t Unsearched(std::string_view rest) const {
    if (at_end_ && builder_.source().ended) return rest.size();
    return rest.size() - std::min<size_t>(rest.size(), kRecordHeaderBytes - 1);
  }

  size_t HandlePartialRecord(const Record& record, size_t at) {
    wanted_ = record.bytes;
    const uint64_t left = available_ - at;
    if (record.bytes <= left || !builder_.source().ended) return 0;
    builder_.AddBad(
        1, absl::StrCat("the last record is cut off: ", left, " of ", record.bytes, " bytes"),
        path_);
    return left;
  }

  // Damage at the very end may be data that is still to come: on a network file system a file can
  // have its new length before its new contents, and shows zeros till then.
  bool MayYetChange(const Record& record, std::string_view rest) const {
    if (!at_end_ || builder_.source().ended) return false;
    if (record.state == Record::State::kBadData) return record.bytes == rest.size();
    return record.state == Record::State::kBadLength &&
           rest.find_first_not_of('\0') == std::string_view::npos;
  }

  void HandleRecord(const Record& record, size_t at) {
    if (record.state == Record::State::kBadData) {
      AddBad(at, "an event with a wrong checksum");
    } else if (!DecodeEvent(record.data, event_)) {
      AddBad(at, "a record that is not an event");
    } else {
      for (const SummaryValue& value : event_.values) HandleValue(value);
    }
  }

  void HandleValue(const SummaryValue& value) {
    for (Target& target : targets_) {
      if (value.tag != target.tag || !ComesFromHere(target)) continue;
      std::string why;
      const std::optional<double> number = ScalarOf(value, why);
      if (number && event_.step < 0) why = absl::StrCat("has the step ", event_.step);
      if (!why.empty()) {
        builder_.AddBad(1, absl::StrCat("\"", Excerpt(value.tag, 63), "\" ", why), path_);
        continue;
      }
      ParsedObservation observation{.value = *number, .step = event_.step};
      if (event_.wall_time > 0 && event_.wall_time <= kMaxUnixSeconds) {
        observation.time = absl::UnixEpoch() + absl::Seconds(event_.wall_time);
      }
      builder_.Add(target.metric, observation);
    }
  }

  // Whether the metric is taken from this folder under this tag. The first that has it keeps it.
  bool ComesFromHere(Target& target) {
    const std::string here = absl::StrCat("the folder ", place_, " (tag ", target.tag, ")");
    const auto [origin, fresh] = builder_.cursor().mutable_origins()->insert({target.metric, here});
    if (fresh || origin->second == here) return true;
    if (!target.known_elsewhere) {
      builder_.AddBad(1,
                      absl::StrCat("\"", Excerpt(target.metric, 63), "\" stands in ", here,
                                   " and in ", origin->second,
                                   ", which was seen first and counts; name the one you mean, as ",
                                   fs::path(folder_).filename().string(), "/", target.tag),
                      path_);
      target.known_elsewhere = true;
    }
    return false;
  }

  void AddBad(size_t at, const std::string& what) {
    builder_.AddBad(1, absl::StrCat(what, ", at byte ", cursor_.offset() + at), path_);
  }

  const std::string path_;
  const std::string folder_;
  const std::string place_;    // of the folder, below the root; "." for itself
  const std::string trusted_;  // see base/open_beneath.h
  CollectionBuilder& builder_;
  std::vector<Target> targets_;
  v1::FileCursor cursor_;
  TfEvent event_;
  uint64_t available_ = 0;  // from the cursor to the end of the file
  uint64_t wanted_ = 0;
  bool at_end_ = false;  // the data at hand goes to the end of the file
};

bool IsEventFile(const fs::directory_entry& entry) {
  std::error_code error;
  return entry.path().filename().string().find("tfevents") != std::string::npos &&
         entry.is_regular_file(error);
}

// The files to read: those that the cursor knows, and new ones while there is room for them.
std::vector<std::string> Admit(const std::string& root, CollectionBuilder& intake) {
  std::set<std::string> known;
  for (const v1::FileCursor& file : intake.cursor().files()) known.insert(file.path());
  size_t room = kMaxFiles - std::min<size_t>(kMaxFiles, known.size());
  const bool was_full = room == 0;
  std::vector<std::string> admitted;
  for (std::string& path : FindEventFiles(root)) {
    const bool old = known.contains(path);
    if (!old && room == 0) {
      if (was_full) continue;
      intake.AddBad(1,
                    absl::StrCat("more than ", kMaxFiles,
                                 " event files: this one and the "
                                 "others are not read"),
                    path);
      break;
    }
    if (!old) --room;
    admitted.push_back(std::move(path));
  }
  return admitted;
}

void AddTags(const std::string& path, size_t limit, std::vector<std::string>& tags) {
  const auto file = OpenForTail("", path);
  if (!file.ok() || !*file) return;
  const auto data = ReadAt(**file, 0, std::min((*file)->size, kWindowBytes), path);
  if (!data.ok()) return;
  TfEvent event;
  std::string why;
  std::string_view rest = *data;
  for (Record record = RecordAt(rest); record.state == Record::State::kWhole;
       record = RecordAt(rest)) {
    rest.remove_prefix(record.bytes);
    if (!DecodeEvent(record.data, event)) continue;
    for (const SummaryValue& value : event.values) {
      const std::string tag(value.tag);
      if (tags.size() >= limit || std::count(tags.begin(), tags.end(), tag) > 0) continue;
      if (ScalarOf(value, why)) tags.push_back(tag);
    }
  }
}

}  // namespace

Status ReadEvents(const std::string& root, CollectionBuilder& intake) {
  for (const std::string& path : Admit(root, intake)) {
    RETURN_IF_ERROR(EventReader(root, path, intake).Read());
    if (intake.stopped()) break;
  }
  return absl::OkStatus();
}

std::vector<std::string> FindEventFiles(const std::string& root) {
  std::error_code error;
  if (fs::is_regular_file(root, error)) return {root};
  std::vector<std::string> files;
  fs::recursive_directory_iterator at(root, fs::directory_options::skip_permission_denied, error);
  for (int entries = 0; !error && at != fs::end(at) && entries < kMaxEntries; ++entries) {
    if (at.depth() >= kMaxFolderDepth) at.disable_recursion_pending();
    if (IsEventFile(*at)) files.push_back(at->path().lexically_normal().string());
    at.increment(error);
  }
  StableSort(files);
  return files;
}

std::vector<std::string> TagsIn(const std::string& root, size_t limit) {
  std::vector<std::string> tags;
  for (const std::string& path : FindEventFiles(root)) {
    if (tags.size() < limit) AddTags(path, limit, tags);
  }
  return tags;
}

}  // namespace shirabe::metrics
