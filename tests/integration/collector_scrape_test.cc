// The scraper against programs that serve their metrics well, badly, or not at all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/file_io.h"
#include "base/open_beneath.h"
#include "metrics/http_scraper.h"

namespace shirabe::metrics {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr std::chrono::seconds kCollectorScrapePatience(20);

// A program with an endpoint: answers each connection with what it is told to, and counts them.
class Endpoint {
 public:
  explicit Endpoint(int port = 0, const std::string& page = "")
      : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (!page.empty()) SayPage(page);
    const int on = 1;
    setsockopt(socket_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* any = reinterpret_cast<sockaddr*>(&address);
    socklen_t length = sizeof(address);
    CHECK(bind(socket_.get(), any, length) == 0 && listen(socket_.get(), 16) == 0);
    CHECK(getsockname(socket_.get(), any, &length) == 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::jthread([this] { Serve(); });
  }
  ~Endpoint() { shutdown(socket_.get(), SHUT_RDWR); }

  uint16_t port() const { return port_; }

  // Bytes to send; "" = nothing, and the connection stays open.
  void Say(const std::string& answer) {
    std::lock_guard lock(mutex_);
    answer_ = answer;
  }
  void SayPage(const std::string& page, const std::string& type = "text/plain; version=0.0.4") {
    Say(absl::StrCat("HTTP/1.1 200 OK\r\nContent-Type: ", type, "\r\nContent-Length: ", page.size(),
                     "\r\n\r\n", page));
  }

  // Waits until it has been asked so many times more.
  bool Asked(int times) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kCollectorScrapePatience,
                             [&, until = asked_ + times] { return asked_ >= until; });
  }
  std::string request() {
    std::lock_guard lock(mutex_);
    return request_;
  }

 private:
  void Serve() {
    for (;;) {
      Fd connection(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!connection.valid()) return;
      char buffer[4096];
      const ssize_t size = recv(connection.get(), buffer, sizeof(buffer), 0);
      std::lock_guard lock(mutex_);
      request_.assign(buffer, size > 0 ? static_cast<size_t>(size) : 0);
      if (!answer_.empty()) {
        (void)!send(connection.get(), answer_.data(), answer_.size(), MSG_NOSIGNAL);
      } else {
        open_ = std::move(connection);
      }
      ++asked_;
      changed_.notify_all();
    }
  }

  const Fd socket_;
  uint16_t port_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string answer_;   // guarded by mutex_, like all below
  std::string request_;  // the last one
  Fd open_;
  int asked_ = 0;
  std::jthread thread_;
};

class ScrapeTest : public testing::Test {
 protected:
  ScrapeTest() : dir_(testing::TempDir() + "/shirabe-scrape-XXXXXX") {
    CHECK(mkdtemp(dir_.data()) != nullptr);
  }
  ~ScrapeTest() override {
    scraper_ = nullptr;
    (void)RemoveAll(dir_);
  }

  ScrapeTarget Target(uint16_t port, const std::string& file = "scrapes") {
    ScrapeTarget target;
    target.port = port;
    target.file = dir_ + "/" + file;
    target.metrics = {"loss"};
    return target;
  }

  std::string Kept(const std::string& file = "scrapes") {
    return ReadFile(dir_ + "/" + file).value_or("");
  }

  // Keeps watching, as reconciling does, until the file holds `text`.
  bool Comes(const ScrapeTarget& target, const std::string& text) {
    const auto until = std::chrono::steady_clock::now() + kCollectorScrapePatience;
    while (std::chrono::steady_clock::now() < until) {
      scraper_->Watch(target);
      const auto kept = ReadFile(target.file);
      if (kept.ok() && kept->find(text) != std::string::npos) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }

  std::string dir_;
  std::unique_ptr<Scraper> scraper_ = MakeScraper();
};

TEST_F(ScrapeTest, KeepsWhatIsNewOnThePage) {
  Endpoint endpoint;
  endpoint.SayPage("# TYPE loss gauge\nloss 0.5\nstep 3\n");
  const ScrapeTarget target = Target(endpoint.port());
  ASSERT_TRUE(Comes(target, "\"metrics\": {\"loss\": 0.5}}\n"));
  EXPECT_THAT(Kept(), HasSubstr("{\"step\": 3, \"timestamp\": "));
  EXPECT_THAT(endpoint.request(), HasSubstr("GET /metrics HTTP/1.1\r\n"));
  ASSERT_TRUE(endpoint.Asked(2));
  endpoint.SayPage("loss 0.25\nstep 4\n");
  ASSERT_TRUE(Comes(target, "{\"loss\": 0.25}}\n"));
  const std::string kept = Kept();
  EXPECT_EQ(std::count(kept.begin(), kept.end(), '\n'), 2) << kept;
}

TEST_F(ScrapeTest, WaitsForAProgramThatIsNotListeningYet) {
  int port = 0;
  {
    Endpoint endpoint;
    port = endpoint.port();
  }
  const ScrapeTarget target = Target(static_cast<uint16_t>(port));
  scraper_->Watch(target);
  Endpoint endpoint(port, "loss 0.5\n");
  EXPECT_TRUE(Comes(target, "{\"loss\": 0.5}}\n"));
  EXPECT_THAT(Kept(), Not(HasSubstr("#"))) << "which is no news";
}

TEST_F(ScrapeTest, SendsTheHeadersAndUnderstandsOpenMetrics) {
  Endpoint endpoint;
  endpoint.SayPage("loss 0.5 1795249800.5 # {a=\"b\"} 1\n# EOF\n",
                   "application/openmetrics-text; version=1.0.0");
  ScrapeTarget target = Target(endpoint.port());
  target.path = "/m?x=1";
  target.headers = {{"X-Token", "abc"}};
  ASSERT_TRUE(Comes(target, "\"timestamp\": 1795249800.5, \"metrics\": {\"loss\": 0.5}}\n"));
  EXPECT_THAT(endpoint.request(), HasSubstr("GET /m?x=1 HTTP/1.1\r\n"));
  EXPECT_THAT(endpoint.request(), HasSubstr("X-Token: abc\r\n"));
}

TEST_F(ScrapeTest, SaysWhatWasWrongWithAnAnswer) {
  Endpoint endpoint;
  const ScrapeTarget target = Target(endpoint.port());
  endpoint.Say("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
  EXPECT_TRUE(Comes(target, "# answered 404 Not Found\n"));
  endpoint.Say("nonsense\r\n\r\n");
  EXPECT_TRUE(Comes(target, "# no answer: "));
  endpoint.Say(absl::StrCat("HTTP/1.1 200 OK\r\nContent-Length: ", 100 << 20, "\r\n\r\n"));
  EXPECT_TRUE(Comes(target, "body limit exceeded"));
  endpoint.SayPage("val_loss 1\n");
  EXPECT_TRUE(Comes(target, "# answered, with other names: val_loss\n"));
  endpoint.SayPage("loss 1\n");
  EXPECT_TRUE(Comes(target, "{\"loss\": 1}}\n")) << "and goes on after all that";
}

// One that accepts and says nothing costs nobody else anything.
// One after the other, so many would take longer than the test is patient.
TEST_F(ScrapeTest, DoesNotWaitForProgramsThatHang) {
  std::deque<Endpoint> hanging(20);
  for (size_t i = 0; i < hanging.size(); ++i) {
    scraper_->Watch(Target(hanging[i].port(), absl::StrCat("hangs-", i)));
  }
  Endpoint answers;
  answers.SayPage("loss 0.5\n");
  EXPECT_TRUE(Comes(Target(answers.port()), "{\"loss\": 0.5}}\n"));
  EXPECT_TRUE(Comes(Target(hanging[19].port(), "hangs-19"), "# no answer: "));
}

TEST_F(ScrapeTest, AppendsNothingOnceItIsDropped) {
  Endpoint endpoint;
  endpoint.SayPage("loss 0.5\n");
  const ScrapeTarget target = Target(endpoint.port());
  ASSERT_TRUE(Comes(target, "0.5"));
  scraper_->Drop(target.file);
  const std::string kept = Kept();
  endpoint.SayPage("loss 0.25\n");
  const ScrapeTarget next = Target(endpoint.port(), "next");
  EXPECT_TRUE(Comes(next, "{\"loss\": 0.25}}\n")) << "the port is free for the next trial";
  EXPECT_EQ(Kept(), kept);
}

// Two trials that both mean to serve one port: only one of them can.
TEST_F(ScrapeTest, AsksOnBehalfOfOneTrialOnly) {
  Endpoint endpoint;
  endpoint.SayPage("loss 0.5\n");
  ASSERT_TRUE(Comes(Target(endpoint.port(), "one"), "{\"loss\": 0.5}}\n"));
  const auto other = MakeScraper();
  const ScrapeTarget second = Target(endpoint.port(), "two");
  other->Watch(second);
  EXPECT_TRUE(Comes(second, "! another trial of this machine is asked at http://127.0.0.1:"));
  EXPECT_THAT(Kept("two"), Not(HasSubstr("metrics\": {")));
}

TEST_F(ScrapeTest, EndsALineThatWasCutOff) {
  Endpoint endpoint;
  endpoint.SayPage("loss 0.5\n");
  const ScrapeTarget target = Target(endpoint.port());
  ASSERT_TRUE(WriteFileAtomic(target.file, "{\"step\": 1, \"met").ok());
  ASSERT_TRUE(Comes(target, "{\"loss\": 0.5}}\n"));
  EXPECT_THAT(Kept(), HasSubstr("{\"step\": 1, \"met\n{\"timestamp\": "));
}

}  // namespace
}  // namespace shirabe::metrics
