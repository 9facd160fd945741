#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/address.h"
#include "base/clock.h"
#include "base/file_io.h"
#include "client/remote_client.h"
#include "cmd/verbs/doctor.h"

namespace shirabe::cmd {
namespace {

using State = Check::State;

// ---- files
// ---------------------------------------------------------------------------------------

bool IsPrivate(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && (info.st_mode & 0077) == 0;
}

// A file is also private where only its owner can enter its folder.
Check CheckPrivate(const std::string& name, const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return {name, State::kOk, path + " does not exist yet"};
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const bool open = !IsPrivate(path) && (S_ISDIR(info.st_mode) || !IsPrivate(folder));
  if (!open) return {name, State::kOk, path + " is readable by its owner only"};
  return {name, State::kError, "other users of this machine can read " + path,
          absl::StrCat("chmod ", S_ISDIR(info.st_mode) ? "700 " : "600 ", path)};
}

// ---- listening sockets
// ---------------------------------------------------------------------------

// "0100007F:1F90", as /proc/net/tcp has it: each word of four bytes in the machine's order.
std::string HostOfHex(const std::string& hex) {
  const std::string bytes = absl::HexStringToBytes(hex);
  const auto byte = [&](size_t i) {
    return static_cast<int>(static_cast<unsigned char>(bytes[i / 4 * 4 + 3 - i % 4]));
  };
  if (bytes.size() == 4) return absl::StrCat(byte(0), ".", byte(1), ".", byte(2), ".", byte(3));
  const bool mapped = absl::StartsWith(hex, "0000000000000000FFFF0000");
  if (mapped) return HostOfHex(hex.substr(24));
  if (std::all_of(bytes.begin(), bytes.end(), [](char c) { return c == 0; })) return "[::]";
  return hex == "00000000000000000000000001000000" ? "[::1]" : "[" + hex + "]";
}

// Addresses on which a process listens, by the inode of the socket.
std::map<std::string, std::string> Listening(const std::string& process) {
  constexpr char kListen[] = "0A";
  std::map<std::string, std::string> addresses;
  for (const char* table : {"/net/tcp", "/net/tcp6"}) {
    const std::string text = ReadFile(process + table).value_or("");
    for (const auto line : absl::StrSplit(text, '\n')) {
      const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
      if (words.size() < 10 || words[3] != kListen) continue;
      const std::vector<std::string> address = absl::StrSplit(words[1], ':');
      const bool whole = address.size() == 2 && address[0].size() % 8 == 0;
      uint32_t port = 0;
      if (!whole || !absl::SimpleHexAtoi(address[1], &port)) continue;
      addresses[words[9]] = absl::StrCat(HostOfHex(address[0]), ":", port);
    }
  }
  return addresses;
}

std::set<std::string> AddressesOf(const std::string& process) {
  const auto listening = Listening(process);
  std::set<std::string> addresses;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(process + "/fd", error)) {
    const std::string target = std::filesystem::read_symlink(entry.path(), error).string();
    if (!absl::StartsWith(target, "socket:[")) continue;
    const auto found = listening.find(target.substr(8, target.size() - 9));
    if (found != listening.end()) addresses.insert(found->second);
  }
  return addresses;
}

// The words that started it, if it is a server of ours; else none.
std::vector<std::string> ServerWords(const std::string& process) {
  const std::string text = ReadFile(process + "/cmdline", 1 << 20).value_or("");
  std::vector<std::string> words = absl::StrSplit(text, '\0', absl::SkipEmpty());
  const bool ours = words.size() > 1 && std::filesystem::path(words[0]).filename() == "shirabe" &&
                    std::any_of(words.begin() + 1, words.end(), [](const std::string& word) {
                      return word == "serve" || word == "controller";
                    });
  return ours ? words : std::vector<std::string>{};
}

// What follows `flag`, as --flag VALUE or --flag=VALUE; "" if it is not given.
std::string ValueOf(const std::vector<std::string>& words, const std::string& flag) {
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == flag && i + 1 < words.size()) return words[i + 1];
    if (absl::StartsWith(words[i], flag + "=")) return words[i].substr(flag.size() + 1);
  }
  return "";
}

Check CheckListener(const std::string& pid, const std::vector<std::string>& words,
                    const std::string& address) {
  // A controller makes itself a certificate where none is given.
  const bool makes_one = std::count(words.begin(), words.end(), "controller") > 0;
  const bool has_tls = makes_one || !ValueOf(words, "--tls-cert").empty();
  const bool insecure = std::count(words.begin(), words.end(), "--insecure") > 0;
  const bool far = !IsLoopback(HostOf(address));
  const std::string name = "process " + pid;
  const std::string katib = ValueOf(words, "--katib-listen");
  const auto port = [](const std::string& text) { return text.substr(text.rfind(':') + 1); };
  if (!katib.empty() && port(katib) == port(address)) {
    return {name, far ? State::kWarning : State::kOk,
            address + " serves Katib's clients, which show no token",
            far ? "keep others away from it: a NetworkPolicy, or leave --katib-listen out" : ""};
  }
  if (insecure) {
    return {name, State::kWarning, address + " takes every caller for the administrator",
            "leave --insecure out, unless all users of this machine may run programs as you"};
  }
  const std::string wire = has_tls ? "TLS" : "plaintext";
  if (far && !has_tls) {
    return {name, State::kError, address + " is reachable from the network in plaintext",
            "give --tls-cert and --tls-key, or listen on 127.0.0.1"};
  }
  return {name, State::kOk, absl::StrCat(address, " asks for a token (", wire, ")")};
}

}  // namespace

std::vector<Check> CheckFileSecurity(const client::StateLocation& place) {
  constexpr char kScheme[] = "sqlite:";
  std::vector<Check> checks = {CheckPrivate("home", place.home)};
  if (absl::StartsWith(place.db, kScheme)) {
    checks.push_back(CheckPrivate("database", place.db.substr(sizeof kScheme - 1)));
  }
  checks.push_back(CheckPrivate("token file", place.home + "/token"));
  if (geteuid() == 0) {
    checks.push_back({"user", State::kWarning, "trials that run here run as root",
                      "run them as a user who may do nothing else"});
  } else {
    checks.push_back({"user", State::kOk,
                      absl::StrCat("trials that run here run as uid ", geteuid(),
                                   " and can do what that user can")});
  }
  return checks;
}

std::vector<Check> CheckListeners(const std::string& proc) {
  std::vector<Check> checks;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(proc, error)) {
    const std::string pid = entry.path().filename().string();
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::vector<std::string> words = ServerWords(entry.path().string());
    if (words.empty()) continue;
    const std::set<std::string> addresses = AddressesOf(entry.path().string());
    if (addresses.empty()) {
      checks.push_back({"process " + pid, State::kWarning,
                        "a server whose sockets cannot be seen: " + absl::StrJoin(words, " "),
                        "look as its user, or as root"});
    }
    for (const std::string& address : addresses) {
      checks.push_back(CheckListener(pid, words, address));
    }
  }
  if (checks.empty()) checks = {{"servers", State::kOk, "none runs on this machine"}};
  return checks;
}

std::vector<Check> CheckServerSecurity(const Access& access) {
  constexpr char kTls[] = "tls://";
  const bool tls = absl::StartsWith(access.server, kTls);
  const std::string server = tls ? access.server.substr(sizeof kTls - 1) : access.server;
  std::vector<Check> checks;
  if (!tls && !IsLoopback(HostOf(server)) && !absl::StartsWith(server, "kube://")) {
    checks.push_back({"transport", State::kError,
                      "tokens and parameters travel to " + server + " in plaintext",
                      "serve with --tls-cert and --tls-key, and use tls://" + server});
  } else {
    checks.push_back({"transport", State::kOk, access.server});
  }
  if (absl::StartsWith(server, "kube://")) return checks;
  client::RemoteOptions options{.server = server, .tls = tls, .clock = RealClock()};
  if (!access.ca.empty()) options.ca = ReadFile(access.ca).value_or("");
  const auto stranger = client::Connect(options);
  if (!stranger.ok()) return {Failed("stranger", stranger.status(), "mend --server")};
  const Status status = (*stranger)->Revision().status();
  if (status.ok()) {
    checks.push_back({"stranger", State::kError, "it answers callers without a token",
                      "start it without --insecure"});
  } else if (absl::IsUnauthenticated(status)) {
    checks.push_back({"stranger", State::kOk, "callers without a token are refused"});
  } else {
    checks.push_back(Failed("stranger", status, "is it running there (shirabe serve)?"));
  }
  return checks;
}

}  // namespace shirabe::cmd
