#include "db/postgres/postgres_params.h"

#include <bit>
#include <utility>

namespace shirabe::db {
namespace {

void AppendBigEndian(uint64_t value, int bytes, std::string* out) {
  for (int shift = (bytes - 1) * 8; shift >= 0; shift -= 8) {
    out->push_back(static_cast<char>(value >> shift));
  }
}

std::string BigEndian(uint64_t value, int bytes) {
  std::string out;
  AppendBigEndian(value, bytes, &out);
  return out;
}

int SizeOfParams(PostgresArray::Type type) {
  switch (type) {
    case PostgresArray::Type::kBool: return 1;
    case PostgresArray::Type::kInt4: return 4;
    default: return 8;
  }
}

}  // namespace

void PostgresArray::Add(int64_t value) {
  const int size = SizeOfParams(type_);
  AppendBigEndian(static_cast<uint64_t>(size), 4, &items_);
  AppendBigEndian(static_cast<uint64_t>(value), size, &items_);
  ++size_;
}

void PostgresArray::AddDouble(double value) { Add(std::bit_cast<int64_t>(value)); }

void PostgresArray::AddBytes(const std::string& value) {
  AppendBigEndian(value.size(), 4, &items_);
  items_ += value;
  ++size_;
}

void PostgresArray::Clear() {
  size_ = 0;
  items_.clear();
}

// Dimensions, whether there are nulls, the type; then, of each dimension, its size and first index.
std::string PostgresArray::Encode() const {
  std::string out;
  out.reserve(20 + items_.size());
  AppendBigEndian(size_ == 0 ? 0 : 1, 4, &out);
  AppendBigEndian(0, 4, &out);
  AppendBigEndian(static_cast<uint32_t>(type_), 4, &out);
  if (size_ == 0) return out;
  AppendBigEndian(static_cast<uint32_t>(size_), 4, &out);
  AppendBigEndian(1, 4, &out);
  return out + items_;
}

PostgresParams& PostgresParams::Int(int64_t value) {
  return Text(BigEndian(static_cast<uint64_t>(value), 8));
}

PostgresParams& PostgresParams::Int4(int32_t value) {
  return Text(BigEndian(static_cast<uint32_t>(value), 4));
}

PostgresParams& PostgresParams::Bool(bool value) { return Text(BigEndian(value ? 1 : 0, 1)); }

PostgresParams& PostgresParams::Text(std::string value) {
  values_.push_back(std::move(value));
  nulls_.push_back(false);
  return *this;
}

PostgresParams& PostgresParams::Null() {
  values_.emplace_back();
  nulls_.push_back(true);
  return *this;
}

PostgresParams& PostgresParams::Array(const PostgresArray& array) { return Text(array.Encode()); }

std::vector<const char*> PostgresParams::pointers() const {
  std::vector<const char*> pointers;
  for (size_t i = 0; i < values_.size(); ++i) {
    pointers.push_back(nulls_[i] ? nullptr : values_[i].data());
  }
  return pointers;
}

std::vector<int> PostgresParams::lengths() const {
  std::vector<int> lengths;
  for (const std::string& value : values_) lengths.push_back(static_cast<int>(value.size()));
  return lengths;
}

int64_t ReadPostgresInt(const char* bytes, int length) {
  uint64_t value = 0;
  if (length > 0 && (bytes[0] & 0x80) != 0) value = ~uint64_t{0};
  for (int i = 0; i < length; ++i) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return static_cast<int64_t>(value);
}

}  // namespace shirabe::db
