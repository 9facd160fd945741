// Network addresses as people write them: HOST:PORT, and [IPv6]:PORT. Pure functions.
#pragma once

#include <string>

namespace shirabe {

// Without the port, where there is one; an IPv6 address keeps its brackets.
std::string HostOf(const std::string& address);

// Whether this host, with or without brackets, can only be this machine: localhost, ::1 or an
// address 127.x. A name that merely begins so (127.example.org) belongs to whoever registered it.
bool IsLoopback(const std::string& host);

}  // namespace shirabe
