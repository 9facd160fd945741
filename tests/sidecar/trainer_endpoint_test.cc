// What sidecar/trainer_endpoint.h promises: what a program tells by HTTP becomes a line of the
// metrics file.
#include "sidecar/trainer_endpoint.h"

#include <gmock/gmock.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>

#include "sidecar/pod_init.h"
#include "tests/sidecar/pod_harness.h"
#include "trial/local/attempt_endpoints.h"

namespace shirabe::sidecar {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using ::testing::HasSubstr;

constexpr char kBody[] = R"({"trainerStatus": {"metrics": [{"name": "loss", "value": "0.25"},)"
                         R"( {"name": "current_step", "value": "20"}]}})";

class TrainerEndpointTest : public testing::Test {
 protected:
  TrainerEndpointTest() : pod_(PodAt(folder_, ConfigOf("127.0.0.1:1"))) {
    EXPECT_TRUE(Init(pod_).ok());
    token_ = *ReadFile(pod_.run(trial::kTrainerTokenFile));
    url_ = *ReadFile(pod_.run(trial::kTrainerUrlFile));
    auto door = OpenTrainerEndpoint(pod_, nullptr);
    EXPECT_TRUE(door.ok()) << door.status();
    if (door.ok()) door_ = *std::move(door);
  }

  int Post(const std::string& body, const std::string& token,
           http::verb verb = http::verb::post) const {
    asio::io_context context;
    beast::tcp_stream stream(context);
    const std::string rest = url_.substr(url_.rfind(':') + 1);
    const auto port = static_cast<uint16_t>(std::stoi(rest));
    beast::error_code error;
    stream.connect(asio::ip::tcp::endpoint(asio::ip::address_v4::loopback(), port), error);
    EXPECT_FALSE(error) << error.message();
    http::request<http::string_body> request(verb, rest.substr(rest.find('/')), 11);
    request.set(http::field::host, "127.0.0.1");
    request.set(http::field::authorization, "Bearer " + token);
    request.body() = body;
    request.prepare_payload();
    http::write(stream, request, error);
    beast::flat_buffer buffer;
    http::response<http::string_body> response;
    http::read(stream, buffer, response, error);
    return error ? 0 : response.result_int();
  }
  std::string Metrics() const {
    const auto text = ReadFile(pod_.paths.metrics_file);
    return text.ok() ? *text : "none";
  }

  const Folder folder_;
  const Pod pod_;
  std::string token_, url_;
  std::unique_ptr<TrainerEndpoint> door_;
};

TEST_F(TrainerEndpointTest, WhatIsNewBecomesALine) {
  EXPECT_EQ(Post(kBody, token_), 200);
  EXPECT_EQ(Metrics(), "{\"step\": 20, \"metrics\": {\"loss\": 0.25}}\n");
  EXPECT_EQ(Post(kBody, token_), 200);
  EXPECT_EQ(Metrics(), "{\"step\": 20, \"metrics\": {\"loss\": 0.25}}\n") << "it is not new";
}

TEST_F(TrainerEndpointTest, StrangersAndNonsenseChangeNothing) {
  EXPECT_EQ(Post(kBody, "another"), 401);
  EXPECT_EQ(Post(kBody, ""), 401);
  EXPECT_EQ(Post(kBody, token_.substr(1)), 401);
  EXPECT_EQ(Post("{}", token_), 400);
  EXPECT_EQ(Post("", token_, http::verb::get), 405);
  EXPECT_EQ(Post(std::string(2 << 20, ' '), token_), 413);
  EXPECT_EQ(Metrics(), "none");
}

TEST_F(TrainerEndpointTest, NamesAndValuesOfAllKindsAreReadBack) {
  EXPECT_EQ(Post(R"({"trainerStatus": {"metrics": [{"name": "a\"b\n", "value": "nan"},)"
                 R"( {"name": "c", "value": "1e-7"}]}})",
                 token_),
            200);
  EXPECT_EQ(Metrics(), "{\"metrics\": {\"a\\\"b\\n\": NaN, \"c\": 1e-07}}\n");
}

TEST_F(TrainerEndpointTest, ThePortIsItsOwn) {
  EXPECT_EQ(OpenTrainerEndpoint(pod_, nullptr).status().code(), absl::StatusCode::kUnavailable);
  door_ = nullptr;
  EXPECT_TRUE(OpenTrainerEndpoint(pod_, nullptr).ok())
      << "a sidecar that was restarted opens it again";
}

}  // namespace
}  // namespace shirabe::sidecar
