// What computes a Gaussian process: the processor, by the code of this folder, or an accelerator
// (suggestion/accelerator.h). At the level of the model and not of matrices, so that between the
// two only θ, values and gradients pass: points and values are uploaded once, all fits to them
// advance in lock-step, each with an L-BFGS of its own here, and what is conditioned is scored, and
// climbed on (suggestion/gp/acquisition_search.h), where it lies. With running trials, failures,
// several objectives or constraints it is so, too: each of the processes that a point is judged by
// is conditioned again with what is imagined (Extend) and gives means, variances and their slopes;
// what is made of those, a few numbers a point and scenario, is made here (gp/acquisition.h).
//
// The processor's engine is the oracle: it gives the bits of Fit and Posterior, and never fails.
// Others agree with it but for rounding, give the same bits for one fit alone and among others, and
// may fail at any call; what they were to do is then done here. Any thread; calls wait.
//
// suggestion/gp/engine_choice.h says which one a process uses.
#pragma once

#include <Eigen/Dense>
#include <memory>
#include <vector>

#include "base/status.h"
#include "suggestion/gp/gaussian_process.h"

namespace shirabe::suggestion::gp {

enum class EngineKind { kProcessor = 0, kAccelerator = 1 };

class Engine {
 public:
  // Points, and values of them in one column or several.
  class Model {
   public:
    virtual ~Model() = default;
  };
  struct Start {
    int column = 0;
    Theta theta;
  };

  virtual ~Engine() = default;
  virtual EngineKind kind() const = 0;
  // A fit is to no more points than this, because each step costs their cube.
  virtual Eigen::Index most_fitted() const = 0;

  virtual StatusOr<std::unique_ptr<Model>> Upload(const Inputs& inputs,
                                                  const Eigen::MatrixXd& y) const = 0;
  // The most probable θ near each start. Cut short where the caller's work is cancelled.
  virtual StatusOr<std::vector<Fitted>> Fit(const Model& model,
                                            const std::vector<Start>& starts) const = 0;
  // Of one column.
  virtual StatusOr<Posterior> Condition(const Model& model, const Start& at) const = 0;
  // As Posterior::Append of each of the points, of which there may be none, with a row of `y` each;
  // and it is scored here from then on. After an error the posterior is as before.
  virtual Status Extend(Posterior& posterior, const Inputs& points,
                        const Eigen::MatrixXd& y) const = 0;
};

const Engine& ProcessorEngine();

}  // namespace shirabe::suggestion::gp
