// Reads on in the event files of a folder and of what lies below it: every file whose name holds
// "tfevents", those too that appear later. Each is followed by a cursor of its own (file_tail.h),
// so that rotation, a resumed program and several writers are simply more files. Steps are the
// events' steps, times their wall times.
//
// A metric is the scalar whose tag is its name, exactly; or, written as `folder/tag`, the scalar of
// that tag in files whose folder ends in `folder` (as Keras keeps train/ and validation/). Should
// two folders have it, the one that is seen first counts, and the other is reported as bad.
//
// Damage costs what is damaged: a record whose data has a wrong checksum is skipped; where a
// length has one, reading goes on at the next place that is a record's beginning. Either is
// reported as bad. A record that is not all there yet is left to the next call; when the program
// has ended, it is reported as cut off. Stateless and thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/status.h"
#include "metrics/collection_builder.h"

namespace shirabe::metrics {

// `root` is a folder, or one event file. One that is not there has no events.
Status ReadEvents(const std::string& root, CollectionBuilder& intake);

// The event files of `root`, by folder and name; what cannot be read has none.
std::vector<std::string> FindEventFiles(const std::string& root);

// The tags of scalars in the first megabyte of each file, at most `limit`.
std::vector<std::string> TagsIn(const std::string& root, size_t limit);

}  // namespace shirabe::metrics
