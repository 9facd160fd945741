#include "metrics/tf_event.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/text/number.h"
#include "tests/metrics/tf_records.h"

namespace shirabe::metrics {
namespace {

// ---- protocol buffers by hand -------------------------------------------------------------------

std::string Number(int field, uint64_t value) {
  return VarintBytes(static_cast<uint64_t>(field) << 3) + VarintBytes(value);
}

std::string Float(int field, float value) {
  return VarintBytes(static_cast<uint64_t>(field) << 3 | 5) + RawBytes(value);
}

std::string Event(const std::string& value) {
  return VarintBytes(1 << 3 | 1) + RawBytes(1000.5) + Number(2, 7) +
         BytesField(5, BytesField(1, value));
}

// The only value of the event, or why it is none.
std::string Scalar(const std::string& value) {
  TfEvent event;
  const std::string record = Event(BytesField(1, "loss") + value);
  if (!DecodeEvent(record, event)) return "no event";
  EXPECT_EQ(event.values.size(), 1u);
  EXPECT_EQ(event.values[0].tag, "loss");
  std::string why;
  const auto number = ScalarOf(event.values[0], why);
  return number ? FormatNumber(*number) : why;
}

std::string Tensor(uint64_t type, const std::string& rest) {
  return Scalar(BytesField(8, Number(1, type) + rest));
}

TEST(TfEvent, ReadsAnEvent) {
  TfEvent event;
  const std::string record = Event(BytesField(1, "loss") + Float(2, 0.25f));
  ASSERT_TRUE(DecodeEvent(record, event));
  EXPECT_EQ(event.wall_time, 1000.5);
  EXPECT_EQ(event.step, 7);
}

TEST(TfEvent, ReadsAFloatAsItsShortestDecimal) {
  EXPECT_EQ(Scalar(Float(2, 0.9f)), "0.9");
  EXPECT_EQ(Scalar(Float(2, 16777217.0f)), "16777216");
  EXPECT_EQ(Scalar(Float(2, std::nanf(""))), "NaN");
  EXPECT_EQ(Scalar(Float(2, -HUGE_VALF)), "-Infinity");
}

TEST(TfEvent, ReadsTensorsOfOneNumber) {
  EXPECT_EQ(Tensor(1, BytesField(4, RawBytes(0.1f))), "0.1");
  EXPECT_EQ(Tensor(1, Float(5, 0.1f)), "0.1");
  EXPECT_EQ(Tensor(1, BytesField(5, RawBytes(0.1f))), "0.1") << "packed";
  EXPECT_EQ(Tensor(1, BytesField(2, "") + BytesField(4, RawBytes(0.1f))), "0.1")
      << "the shape of a scalar";
  EXPECT_EQ(Tensor(1, BytesField(2, BytesField(2, Number(1, 1))) + BytesField(4, RawBytes(0.1f))),
            "0.1");
  EXPECT_EQ(Tensor(1, ""), "0") << "without elements";
  EXPECT_EQ(Tensor(2, BytesField(4, RawBytes(0.1))), "0.1");
  EXPECT_EQ(Tensor(2, BytesField(6, RawBytes(1e300))), "1e+300");
  EXPECT_EQ(Tensor(3, BytesField(4, RawBytes(int32_t{-5}))), "-5");
  EXPECT_EQ(Tensor(3, BytesField(7, VarintBytes(static_cast<uint64_t>(-5)))), "-5");
  EXPECT_EQ(Tensor(3, Number(7, 5)), "5");
  EXPECT_EQ(Tensor(9, BytesField(4, RawBytes(int64_t{1} << 40))), "1099511627776");
  EXPECT_EQ(Tensor(9, BytesField(10, VarintBytes(300))), "300");
  EXPECT_EQ(Tensor(14, BytesField(4, RawBytes(uint16_t{0x3f80}))), "1");
  EXPECT_EQ(Tensor(19, BytesField(4, RawBytes(uint16_t{0x3800}))), "0.5");
  EXPECT_EQ(Tensor(19, BytesField(13, VarintBytes(0xc000))), "-2");
  EXPECT_EQ(Tensor(19, BytesField(13, VarintBytes(0x0001))), FormatNumber(std::ldexp(1.0, -24)));
  EXPECT_EQ(Tensor(19, BytesField(13, VarintBytes(0x7c00))), "Infinity");
}

TEST(TfEvent, SaysWhatIsNoScalar) {
  EXPECT_EQ(Scalar(BytesField(5, "histogram")), "is not a scalar (a histogram, an image, …)");
  EXPECT_EQ(Tensor(1, BytesField(2, BytesField(2, Number(1, 3)))),
            "is a tensor of more than one number");
  EXPECT_EQ(Tensor(1, BytesField(4, "ab")), "is a tensor of the type 1, not one number");
  EXPECT_EQ(Tensor(7, BytesField(8, "text")), "is a tensor of the type 7, not one number");
  EXPECT_EQ(Scalar(BytesField(8, "\xff")), "is a tensor that cannot be read");
}

TEST(TfEvent, RefusesWhatIsNoMessage) {
  TfEvent event;
  EXPECT_TRUE(DecodeEvent("", event));
  const std::string good = Event(BytesField(1, "loss") + Float(2, 0.25f));
  int refused = 0;
  for (size_t cut = 1; cut < good.size(); ++cut)
    refused += !DecodeEvent(good.substr(0, cut), event);
  EXPECT_GT(refused, static_cast<int>(good.size()) / 2);
  EXPECT_FALSE(DecodeEvent("\x0b", event)) << "a group";
  EXPECT_FALSE(DecodeEvent(std::string(1, '\0'), event)) << "the field 0";
  EXPECT_FALSE(DecodeEvent(VarintBytes(5 << 3 | 2) + VarintBytes(uint64_t{1} << 62), event));
}

// Two bytes of a record would take fifty of memory.
TEST(TfEvent, RefusesMoreValuesThanAnyWriterGives) {
  TfEvent event;
  std::string values;
  for (size_t i = 0; i < kMaxEventValues; ++i) values += BytesField(1, "");
  EXPECT_TRUE(DecodeEvent(BytesField(5, values), event));
  EXPECT_EQ(event.values.size(), kMaxEventValues);
  EXPECT_FALSE(DecodeEvent(BytesField(5, values + BytesField(1, "")), event));
  EXPECT_FALSE(DecodeEvent(BytesField(5, values) + BytesField(5, BytesField(1, "")), event));
}

// ---- records ------------------------------------------------------------------------------------

// RFC 3720, B.4, and the mask by hand.
TEST(TfRecord, HasTheChecksumOfTheStandard) {
  const auto mask = [](uint32_t sum) { return (sum >> 15 | sum << 17) + 0xa282ead8u; };
  EXPECT_EQ(MaskedCrc32c(std::string(32, '\0')), mask(0x8a9136aa));
  EXPECT_EQ(MaskedCrc32c(std::string(32, '\xff')), mask(0x62a8ab43));
  EXPECT_EQ(MaskedCrc32c("123456789"), mask(0xe3069283));
}

TEST(TfRecord, TellsWholeFromPartial) {
  const std::string record = TfRecordOf("abc");
  ASSERT_EQ(record.size(), 19u);
  for (size_t cut = 0; cut < record.size(); ++cut) {
    const Record partial = RecordAt(std::string_view(record).substr(0, cut));
    EXPECT_EQ(partial.state, Record::State::kPartial) << cut;
    EXPECT_EQ(partial.bytes, cut < 12 ? 12u : 19u) << cut;
  }
  const std::string longer = record + "more";
  const Record whole = RecordAt(longer);
  EXPECT_EQ(whole.state, Record::State::kWhole);
  EXPECT_EQ(whole.data, "abc");
  EXPECT_EQ(whole.bytes, 19u);
  EXPECT_EQ(RecordAt(TfRecordOf("")).state, Record::State::kWhole);
}

TEST(TfRecord, NoticesEachFlippedBit) {
  const std::string record = TfRecordOf("some data");
  for (size_t bit = 0; bit < record.size() * 8; ++bit) {
    std::string damaged = record;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ 1 << bit % 8);
    const auto state = RecordAt(damaged).state;
    EXPECT_EQ(state, bit < 96 ? Record::State::kBadLength : Record::State::kBadData) << bit;
  }
}

TEST(TfRecord, RefusesALengthThatNobodyMeans) {
  const std::string length = RawBytes(uint64_t{kMaxRecordBytes + 1});
  EXPECT_EQ(RecordAt(length + RawBytes(MaskedCrc32c(length))).state, Record::State::kBadLength);
}

TEST(TfRecord, FindsTheNextOne) {
  const std::string record = TfRecordOf("abc");
  EXPECT_EQ(FindRecord("junk!" + record), 5u);
  EXPECT_EQ(FindRecord(std::string(100, '\0') + record), 100u);
  EXPECT_EQ(FindRecord(std::string(1000, '\0')), std::string_view::npos);
  EXPECT_EQ(FindRecord("short"), std::string_view::npos);
}

}  // namespace
}  // namespace shirabe::metrics
