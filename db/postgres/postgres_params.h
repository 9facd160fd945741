// The parameters of a statement in PostgreSQL's binary form: exact to the last bit, and nothing in
// them is ever SQL. Values are appended in the order of $1, $2, …; the statement says their types
// ($1::int8), which must be the ones given here. Value types, one thread at a time.
//
// An array travels as one parameter: unnest($1::int8[], $2::bytea[]) makes a table of it, so that
// one statement writes any number of rows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shirabe::db {

class PostgresArray {
 public:
  // The values are the server's numbers for these types.
  enum class Type : uint32_t {
    kBool = 16,
    kBytes = 17,
    kInt8 = 20,
    kInt4 = 23,
    kText = 25,
    kDouble = 701
  };
  explicit PostgresArray(Type type) : type_(type) {}

  void Add(int64_t value);  // bool, int4, int8
  void AddDouble(double value);
  void AddBytes(const std::string& value);  // bytea, text
  int size() const { return size_; }
  void Clear();
  std::string Encode() const;

 private:
  const Type type_;
  int size_ = 0;
  std::string items_;
};

class PostgresParams {
 public:
  PostgresParams& Int(int64_t value);       // int8
  PostgresParams& Int4(int32_t value);      // int4
  PostgresParams& Bool(bool value);         // bool
  PostgresParams& Text(std::string value);  // text, bytea
  PostgresParams& Null();
  // int8; null if negative, as LIMIT wants it.
  PostgresParams& Limit(int64_t value) { return value < 0 ? Null() : Int(value); }
  PostgresParams& Array(const PostgresArray& array);

  // What libpq takes, valid until the next change.
  int size() const { return static_cast<int>(values_.size()); }
  std::vector<const char*> pointers() const;
  std::vector<int> lengths() const;

 private:
  std::vector<std::string> values_;
  std::vector<bool> nulls_;
};

// The same encoding, read: `length` bytes as a big-endian number with a sign.
int64_t ReadPostgresInt(const char* bytes, int length);

}  // namespace shirabe::db
