// Archives as strangers make them: raw headers of tar, in gzip. Any thread.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "artifacts/package/gzip_stream.h"
#include "base/file_io.h"

namespace shirabe::artifacts {

struct RawEntry {
  std::string name;
  char type = '0';
  std::string bytes = {};
  std::string target = {};
  int mode = 0644;
  int64_t size = -1;  // that the header says; -1 = of the bytes
};

inline std::string RawHeader(const RawEntry& entry) {
  std::string header(512, '\0');
  const auto put = [&](size_t at, const std::string& text) {
    header.replace(at, text.size(), text);
  };
  const auto octal = [](int64_t number, int digits) {
    char text[32];
    snprintf(text, sizeof text, "%0*llo", digits, static_cast<unsigned long long>(number));
    return std::string(text);
  };
  put(0, entry.name.substr(0, 100));
  put(100, octal(entry.mode, 7));
  put(124, octal(entry.size >= 0 ? entry.size : static_cast<int64_t>(entry.bytes.size()), 11));
  put(148, "        ");
  header[156] = entry.type;
  put(157, entry.target.substr(0, 100));
  put(257, std::string("ustar\0"
                       "00",
                       8));
  int64_t sum = 0;
  for (const char byte : header) sum += static_cast<unsigned char>(byte);
  put(148, octal(sum, 6) + std::string("\0 ", 2));
  return header;
}

inline std::string RawTar(const std::vector<RawEntry>& entries) {
  std::string tar;
  for (const RawEntry& entry : entries) {
    tar += RawHeader(entry) + entry.bytes;
    tar.append((512 - tar.size() % 512) % 512, '\0');
  }
  return tar + std::string(1024, '\0');
}

inline std::string Gzipped(const std::string& bytes) {
  std::string out;
  Gzip gzip([&](std::string_view piece) {
    out += piece;
    return absl::OkStatus();
  });
  CHECK(gzip.Add(bytes).ok() && gzip.Finish().ok());
  return out;
}

inline std::string RawPackage(const std::vector<RawEntry>& entries) {
  return Gzipped(RawTar(entries));
}

// One record of an extended header, of the kind 'x' or 'g'.
inline RawEntry PaxEntry(const std::string& key, const std::string& value, char type = 'x') {
  const std::string rest = " " + key + "=" + value + "\n";
  size_t length = rest.size() + 1;
  while (std::to_string(length).size() + rest.size() != length) {
    length = std::to_string(length).size() + rest.size();
  }
  return {.name = "pax", .type = type, .bytes = std::to_string(length) + rest};
}

// A file of its own with these bytes, open.
inline Fd OpenedFile(const std::string& bytes) {
  std::string path = "/tmp/shirabe-archive-XXXXXX";
  Fd fd(mkstemp(path.data()));
  CHECK(fd.valid() && unlink(path.c_str()) == 0);
  CHECK(pwrite(fd.get(), bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
  return fd;
}

}  // namespace shirabe::artifacts
