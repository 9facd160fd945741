// SHA-256, in hexadecimal. Thread-safe.
#pragma once

#include <string>
#include <string_view>

namespace shirabe::trial {

std::string HexSha256(std::string_view bytes);

}  // namespace shirabe::trial
