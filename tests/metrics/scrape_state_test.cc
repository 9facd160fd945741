#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "metrics/describe_source.h"
#include "metrics/http_scraper.h"
#include "tests/metrics/collecting.h"

namespace shirabe::metrics {
namespace {

using testing::HasSubstr;

// The lines that a page adds are read by the collector, as they are by the real one.
class ScrapeStateTest : public CollectingTest {
 protected:
  ScrapeStateTest() {
    spec_.mutable_collector()->set_kind(v1::PROMETHEUS_METRIC);
    // Nobody is asked: the program is gone.
    source_.ended = true;
  }

  // What is new on this page.
  std::string See(std::string_view page) {
    Append(source_.files.scrapes, memory_.LinesFor(page, false, now_ += absl::Seconds(1)));
    return Collect(true);
  }

  void StartAnew() { memory_ = ScrapeState(source_.metrics, source_.files.scrapes); }

  absl::Time now_ = absl::FromUnixMillis(1'000'500);
  ScrapeState memory_{source_.metrics, source_.files.scrapes};
};

TEST_F(ScrapeStateTest, CountsAValueWhenItChanges) {
  EXPECT_EQ(See("loss 0.5\nacc 0.1"), "loss@1*=0.5 acc@1*=0.1");
  EXPECT_EQ(last_.observations[0].time, now_);
  EXPECT_EQ(See("loss 0.5\nacc 0.1"), "");
  EXPECT_EQ(See("loss 0.25\nacc 0.1"), "loss@2*=0.25");
  EXPECT_EQ(See("loss NaN\nacc 0.1"), "loss@3*=NaN");
  EXPECT_EQ(See("loss NaN\nacc +Inf"), "acc@2*=Infinity");
}

TEST_F(ScrapeStateTest, TakesTheStepFromThePage) {
  EXPECT_EQ(See("step 10\nloss 0.5"), "loss@10=0.5");
  EXPECT_EQ(See("step 20\nloss 0.5"), "loss@20=0.5") << "the same value, a step later";
  EXPECT_EQ(See("step 20\nloss 0.4"), "loss@20=0.4") << "half the page was old";
  EXPECT_EQ(See("global_step 1e3\nloss 0.4"), "loss@1000=0.4");
  EXPECT_EQ(See("global_step -1\nloss 0.3"), "loss@1*=0.3") << "which is no step";
}

TEST_F(ScrapeStateTest, TakesTheTimeFromTheSample) {
  EXPECT_EQ(See("loss 0.5 5000"), "loss@1*=0.5");
  EXPECT_EQ(last_.observations[0].time, absl::FromUnixSeconds(5));
  EXPECT_EQ(See("loss 0.5 5000"), "");
  EXPECT_EQ(See("loss 0.5 6000"), "loss@2*=0.5") << "measured again";
}

TEST_F(ScrapeStateTest, GoesOnAfterARestart) {
  EXPECT_EQ(See("step 3\nloss 0.5 5000\nacc NaN"), "loss@3=0.5 acc@3=NaN");
  StartAnew();
  EXPECT_EQ(See("step 3\nloss 0.5 5000\nacc NaN"), "");
  EXPECT_EQ(See("step 4\nloss 0.5 5000\nacc NaN"), "loss@4=0.5 acc@4=NaN");
}

TEST_F(ScrapeStateTest, TakesOneSeriesByItsLabels) {
  source_.metrics = {"loss{split=\"valid\"}"};
  StartAnew();
  EXPECT_EQ(See("loss{split=\"train\"} 1\nloss{fold=\"1\",split=\"valid\"} 2"),
            "loss{split=\"valid\"}@1*=2");
}

TEST_F(ScrapeStateTest, ComplainsOnceThatItIsNotClearWhichSeriesIsMeant) {
  EXPECT_EQ(See("loss{a=\"1\"} 1\nloss{a=\"2\"} 2"), "");
  EXPECT_EQ(last_.bad_lines, 1);
  EXPECT_THAT(last_.bad_sample, HasSubstr("loss has 2 series: loss{a=\"1\"}, loss{a=\"2\"}; name"));
  See("loss{a=\"1\"} 1\nloss{a=\"2\"} 2");
  EXPECT_EQ(last_.bad_lines, 0);
  StartAnew();
  See("loss{a=\"1\"} 1\nloss{a=\"2\"} 2");
  EXPECT_EQ(last_.bad_lines, 0) << "after a restart neither";
}

TEST_F(ScrapeStateTest, TellsWhatThePageHas) {
  source_.metrics = {"loss"};
  StartAnew();
  EXPECT_THAT(Describe(),
              HasSubstr("at http://127.0.0.1:8080/metrics (nothing answered there while it ran)"));
  EXPECT_EQ(See("python_info{version=\"3\"} 1\nval_loss 2"), "");
  EXPECT_EQ(last_.bad_lines, 0) << "its first value may be still to come";
  EXPECT_THAT(Describe(), HasSubstr("(answered, with other names: python_info, val_loss)"));
}

TEST_F(ScrapeStateTest, RefusesAUrlAndNamesTheField) {
  const auto refusal = [&](auto change) {
    v1::MetricsCollectorSpec spec = spec_;
    change(*spec.mutable_source()->mutable_http_get());
    return Message(CreateCollector(spec).status());
  };
  using Http = v1::HttpGetAction;
  EXPECT_THAT(refusal([](Http& http) { http.mutable_port()->set_string_value("web"); }),
              HasSubstr("httpGet.port: must be a number"));
  for (const char* host : {"example.org", "169.254.169.254", "10.0.0.1", "0.0.0.0", "fe80::1",
                           "::ffff:169.254.169.254", "127.0.0.1.nip.io", "2130706433"}) {
    EXPECT_THAT(refusal([&](Http& http) { http.set_host(host); }),
                HasSubstr(absl::StrCat("httpGet.host: \"", host, "\" is not the trial's own")));
  }
  EXPECT_THAT(refusal([](Http& http) { http.set_path("/a b"); }), HasSubstr("httpGet.path"));
  EXPECT_THAT(refusal([](Http& http) { http.set_path("/a\r\nx: y"); }), HasSubstr("httpGet.path"));
  EXPECT_THAT(refusal([](Http& http) { http.set_path("/調べ"); }), HasSubstr("httpGet.path"));
  EXPECT_THAT(refusal([](Http& http) { http.set_scheme("HTTPS"); }),
              HasSubstr("httpGet.scheme: \"HTTPS\" is not supported"));
  EXPECT_THAT(refusal([](Http& http) {
                auto& header = *http.mutable_http_headers()->mutable_list_value()->add_values();
                auto& fields = *header.mutable_struct_value()->mutable_fields();
                fields["name"].set_string_value("x");
                fields["value"].set_string_value("a\r\nb");
              }),
              HasSubstr("httpGet.httpHeaders: must be a list"));
  EXPECT_EQ(refusal([](Http& http) {
              http.set_scheme("http");
              http.set_host("::1");
              http.mutable_port()->set_string_value("9090");
            }),
            "");
}

}  // namespace
}  // namespace shirabe::metrics
