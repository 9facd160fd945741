// Requests that can be read in two ways. Whoever stands between us and the caller may read them the
// other way: what is a body to one of them is a request to the other, with somebody else's name.
#include "tests/attack/attacked_server.h"

namespace shirabe::attack {
namespace {

using service::RequestText;
using service::Wire;
using service::WireReply;
using testing::HasSubstr;
using testing::Not;

class HttpFramingAttack : public AttackTest {
 protected:
  // A request that makes an experiment: behind or within what is not clear it must never count.
  static std::string Smuggled() {
    return RequestText("POST /api/v1/namespaces/red/experiments", kRedToken,
                       Spec(kAskedSpec, "red", "smuggled"));
  }
  bool WasSmuggled() const {
    return Http("GET /api/v1/namespaces/red/experiments/smuggled", kRedToken).status == 200;
  }
  // The status of the only reply, after which the connection is closed.
  int OnlyReply(const std::string& text) const {
    Wire wire(http_port_);
    wire.Send(text);
    const WireReply reply = wire.ReadReply();
    EXPECT_TRUE(wire.ReadToEnd()) << "stays open after " << text.substr(0, 200);
    EXPECT_THAT(wire.data(), Not(HasSubstr("HTTP/1."))) << text.substr(0, 200);
    return reply.status;
  }
  static std::string Post(const std::string& fields) {
    return absl::StrCat("POST /api/v1/validate HTTP/1.1\r\nAuthorization: Bearer ", kRedToken,
                        "\r\n", fields);
  }
};

// attacks: HTTP POST /api/v1/validate, HTTP POST /api/v1/namespaces/{namespace}/experiments
TEST_F(HttpFramingAttack, BodiesThatCanBeReadInTwoWays) {
  Serve();
  struct Case {
    int status;
    std::string fields;
  };
  const std::string length = absl::StrCat("Content-Length: ", Smuggled().size(), "\r\n");
  const std::string wrong_chunk = "3\r\nabcd\r\n0\r\n\r\n";
  const Case cases[] = {
      {400, "Host: a\r\nTransfer-Encoding: xchunked\r\n\r\n"},
      {400, "Host: a\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n"},
      {400, "Host: a\r\nTransfer-Encoding: identity\r\n\r\n"},
      {400, "Host: a\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n"},
      {400, "Host: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n0\r\n\r\n"},
      {400,
       "Host: a\r\nTransfer-Encoding: \x0b"
       "chunked\r\n\r\n0\r\n\r\n"},
      {400, "Host: a\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n"},
      {400, "Host: a\r\nX: y\r\n Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
      {501, "Host: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"},
      {400, "Host: a\r\nTransfer-Encoding: chunked\r\n" + length + "\r\n0\r\n\r\n"},
      {400, "Host: a\r\n" + length + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
      {400, "Host: a\r\nContent-Length: 0\r\n" + length + "\r\n"},
      {400, "Host: a\r\n" + length + length + "\r\n"},
      {400, "Host: a\r\nContent-Length: 0, 0\r\n\r\n"},
      {400, "Host: a\r\nContent-Length: +0\r\n\r\n"},
      {400, "Host: a\r\nContent-Length: -1\r\n\r\n"},
      {400, "Host: a\r\nContent-Length: 0x0\r\n\r\n"},
      {400, "Host: a\r\nContent-Length: 0 0\r\n\r\n"},
      {413, "Host: a\r\nContent-Length: 18446744073709551616\r\n\r\n"},
      {400, "Host: a\r\nContent-Length: 0\nX: y\r\n\r\n"},
      {400, "Host: a\nContent-Length: 0\n\n"},
      {400, std::string("Host: a\r\nX: a\0b\r\n\r\n", 20)},
      {400, "Host: a\r\nX: a\rb\r\n\r\n"},
      {400, "Host: a\r\nExpect: 100-continue\r\nTransfer-Encoding: x\r\n\r\n"},
      {417, "Host: a\r\nExpect: the-best\r\n\r\n"},
      {400, "Host: a\r\nTransfer-Encoding: chunked\r\n\r\n" + wrong_chunk},
      {400, "Host: a\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n\r\n"},
      {400, "Host: a\r\nTransfer-Encoding: chunked\r\n\r\n0x0\r\n\r\n"},
      {400, "Host: a\r\nTransfer-Encoding: chunked\r\n\r\n0\n\n"},
      {400, "Host: a\r\nTransfer-Encoding: chunked\r\n\r\n0 ;a\r\n\r\n"},
      {413, "Host: a\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n"},
      {413, "Host: a\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000000\r\n"},
      {400, "Host: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nno trailer\r\n\r\n"},
  };
  for (const Case& one : cases) {
    EXPECT_EQ(OnlyReply(Post(one.fields) + Smuggled()), one.status) << one.fields;
  }
  EXPECT_FALSE(WasSmuggled());
  ExpectAlive();
}

// attacks: HTTP GET /version, HTTP POST /api/v1/namespaces/{namespace}/experiments
TEST_F(HttpFramingAttack, HeadsThatAreNone) {
  Serve();
  struct Case {
    int status;
    std::string text;
  };
  std::string many = "GET /version HTTP/1.1\r\nHost: a\r\n";
  for (int i = 0; i < 100'000; ++i) many += "a: b\r\n";
  const Case cases[] = {
      {400, "GET /version HTTP/1.1\r\n\r\n"},                        // no Host
      {400, "GET /version HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"},  // two
      {400, "GET /version HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n"},
      {400, "GET /version HTTP/1.1\r\nHost: a@b\r\n\r\n"},
      {400, "GET /version\r\n"},  // HTTP/0.9
      {400, "GET  /version HTTP/1.1\r\nHost: a\r\n\r\n"},
      {400, "GET /version HTTP/1.1 \r\nHost: a\r\n\r\n"},
      {400, "GET\t/version\tHTTP/1.1\r\nHost: a\r\n\r\n"},
      {400, "GET version HTTP/1.1\r\nHost: a\r\n\r\n"},
      {400, "GET a:80 HTTP/1.1\r\nHost: a\r\n\r\n"},
      {400, "GET /version\xff HTTP/1.1\r\nHost: a\r\n\r\n"},
      {505, "GET /version HTTP/3.0\r\nHost: a\r\n\r\n"},
      {505, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
      {501, "CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n"},
      {400, "\x16\x03\x01\x02"},  // TLS
      {400, "GET /version HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
      {414, "GET /" + std::string(100'000, 'a') + " HTTP/1.1\r\nHost: a\r\n\r\n"},
      {431, "GET /version HTTP/1.1\r\nHost: a\r\nX: " + std::string(100'000, 'a') + "\r\n\r\n"},
      {431, many + "\r\n"},
  };
  for (const Case& one : cases) {
    EXPECT_EQ(OnlyReply(one.text + Smuggled()), one.status) << one.text.substr(0, 200);
  }
  EXPECT_FALSE(WasSmuggled());
  ExpectAlive();
}

// attacks: HTTP GET /api/v1/namespaces/{namespace}/experiments/{name}
TEST_F(HttpFramingAttack, PathsThatMeanAnotherPlace) {
  Serve();
  for (const char* path :
       {"/api/v1/namespaces/red%2fexperiments/x", "/api/v1/namespaces/red/experiments/%2e%2e",
        "/api/v1/namespaces/red/experiments/a%2f..%2fb", "/api/v1/namespaces/red/experiments/a%00",
        "/api/v1/namespaces/red/experiments/%ff%fe", "/api/v1/namespaces/red/experiments/a%0d%0ab",
        "/api/v1/namespaces/red/experiments/%", "/api/v1/namespaces/red/experiments/%c0%af"}) {
    EXPECT_THAT(Http(absl::StrCat("GET ", path), kRedToken).status, testing::AnyOf(400, 404))
        << path;
  }
  // The host of an absolute target is the one that counts.
  EXPECT_EQ(Http("GET http://localhost/version", "").status, 200);
  EXPECT_EQ(Http("get /version", "").status, 405);
}

// attacks: HTTP GET /version
TEST_F(HttpFramingAttack, WhatIsClearIsAnsweredOneAfterTheOther) {
  Serve();
  Wire wire(http_port_);
  wire.Send(absl::StrCat(
      Post("Host: a\r\nTransfer-Encoding: Chunked\r\n\r\n2;x=y\r\n{}\r\n0\r\nT: x\r\n\r\n"),
      "GET /version HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n",
      "GET /version HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "GET /version HTTP/1.0\r\n\r\n"));
  for (int i = 0; i < 4; ++i) EXPECT_EQ(wire.ReadReply().status, 200) << i;
  EXPECT_TRUE(wire.ReadToEnd());
}

}  // namespace
}  // namespace shirabe::attack
