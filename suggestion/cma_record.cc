#include "suggestion/cma_record.h"

#include <bit>
#include <cmath>

namespace shirabe::suggestion {
namespace {

constexpr int kBytes = 8;

}  // namespace

void CmaRecord::Word(uint64_t& value) {
  if (!reads_) {
    for (int i = 0; i < kBytes; ++i) text_.push_back(static_cast<char>(value >> (8 * i)));
    return;
  }
  if (!ok_ || text_.size() - next_ < kBytes) {
    ok_ = false;
    return;
  }
  value = 0;
  for (int i = 0; i < kBytes; ++i) {
    value |= static_cast<uint64_t>(static_cast<unsigned char>(text_[next_ + i])) << (8 * i);
  }
  next_ += kBytes;
}

void CmaRecord::Number(double& value) {
  auto word = std::bit_cast<uint64_t>(value);
  Word(word);
  if (!reads_ || !ok_) return;
  value = std::bit_cast<double>(word);
  ok_ = std::isfinite(value);
}

void CmaRecord::Integer(int64_t& value) {
  constexpr double kMost = 0x1p53;
  auto number = static_cast<double>(value);
  Number(number);
  if (!reads_ || !ok_) return;
  ok_ = number == std::floor(number) && std::abs(number) <= kMost;
  if (ok_) value = static_cast<int64_t>(number);
}

void CmaRecord::Vector(Eigen::VectorXd& values) {
  for (double& value : values) Number(value);
}

void CmaRecord::Matrix(Eigen::MatrixXd& values) {
  const bool symmetric = values.rows() == values.cols();
  for (Eigen::Index column = 0; column < values.cols(); ++column) {
    for (Eigen::Index row = symmetric ? column : 0; row < values.rows(); ++row) {
      Number(values(row, column));
      if (symmetric) values(column, row) = values(row, column);
    }
  }
}

void CmaRecord::List(std::vector<double>& values, int64_t most) {
  auto size = static_cast<int64_t>(values.size());
  Integer(size);
  if (!ok_ || size < 0 || size > most) {
    ok_ = false;
    return;
  }
  values.resize(size);
  for (double& value : values) Number(value);
}

}  // namespace shirabe::suggestion
