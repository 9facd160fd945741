// The small files that an attempt finds when it starts: parameters, and where it may report. Pure
// but for the file system; any thread.
#pragma once

#include <string>

#include "base/status.h"

namespace shirabe::trial {

// Written in place: it is not read before the program runs, and a start that is cut short writes it
// again. Errors as by InItsWay.
Status WriteInput(const std::string& path, const std::string& text);

// What another attempt has put where this one's files are to be ends this one, and nothing else:
// kDataLoss for every error but kResourceExhausted.
Status InItsWay(const Status& status);

}  // namespace shirabe::trial
