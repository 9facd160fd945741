// A flat sequence of numbers that states are written to and read from: how the distributions of
// CMA-ES travel in a memo. One list of fields serves both directions, so that they cannot disagree:
//
//   void Fields(CmaRecord& record) { record.Number(sigma_); record.Vector(mean_); }
//
// The reader trusts nothing: sizes are those of the object that is read into, a number that is
// missing or not finite ends it with ok() = false, and what was read so far is to be thrown away.
// Doubles are kept to the bit, little-endian. Not for two threads at once.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace shirabe::suggestion {

class CmaRecord {
 public:
  // Writes, to text().
  CmaRecord() = default;
  // Reads `text`, which is copied.
  explicit CmaRecord(std::string text) : reads_(true), text_(std::move(text)) {}

  void Number(double& value);
  // Up to 2^53, as a number.
  void Integer(int64_t& value);
  // All bits of a word.
  void Word(uint64_t& value);
  // Of fixed size.
  void Vector(Eigen::VectorXd& values);
  // Of fixed size; a square matrix is symmetric and only its lower half is kept.
  void Matrix(Eigen::MatrixXd& values);
  // Of any length up to `most`.
  void List(std::vector<double>& values, int64_t most);

  // What was read makes no sense.
  void Reject() { ok_ = false; }

  bool reads() const { return reads_; }
  // Whether everything asked for was there and made sense.
  bool ok() const { return ok_; }
  // A reader has used up its text.
  bool AtEnd() const { return next_ == text_.size(); }
  const std::string& text() const { return text_; }

 private:
  bool reads_ = false;
  bool ok_ = true;
  std::string text_;
  size_t next_ = 0;  // the first byte that has not been read
};

}  // namespace shirabe::suggestion
