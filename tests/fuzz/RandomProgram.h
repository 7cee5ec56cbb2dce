// Random tensor programs for differential testing: the same seed runs the same statements on
// whichever backend is in scope, since every choice depends on the seed, shapes and dtypes alone.
// Data, scalars and slice starts come from a second stream, so that a variant of a program has the
// same structure and other numbers. Differential.h compares the runs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/fuzz/TrackedValue.h"

namespace fl::testing {

// What the program read on the host, in order.
struct HostValue {
  std::string name;
  dtype type;
  Shape shape;  // () of a text
  std::string bytes;
  bool exact;
  double error;  // see TrackedValue.h; only if measured
};

// At most so many statements are in a program.
inline constexpr int kMostStatements = 200;

// What is left of a program: its first statements but some.
struct Cut {
  int statements = kMostStatements;
  std::set<int> without;  // by number, from 0
};

struct ProgramOptions {
  uint64_t seed = 0;
  uint64_t variant = 0;
  bool measure = false;
  Cut cut = {};
  bool budgets = false;  // each read within about the least budget that its plans meet
};

class RandomProgram {
 public:
  explicit RandomProgram(const ProgramOptions& options);

  // Runs on this thread's backend; once.
  std::vector<HostValue> run();
  // Tame programs keep to the domains in which results on different devices are near; the others
  // hold NaN, infinities and anything that follows from them.
  bool tame() const { return tame_; }
  // The statements so far, one a line.
  const std::string& text() const { return text_; }

 private:
  static constexpr Dim kMaxElements = 60000;

  struct Variable {
    std::string name;
    Value value;
    int storage;  // variables of one storage alias
  };
  using Statement = bool (RandomProgram::*)();
  struct Weighted {
    Statement statement;
    int weight;
  };

  // ---- Choices ----
  int below(int count) { return static_cast<int>(structure_() % static_cast<uint64_t>(count)); }
  bool chance(int percent) { return below(100) < percent; }
  dtype anyType();
  dtype anyFloat();
  Shape relatedShape();
  // Recent variables more often; they make the longer chains. The last one while focused.
  Variable& any();
  // What two shapes broadcast to; nothing if they do not, or to more elements than programs hold.
  static std::optional<Shape> broadcastOf(const Shape& a, const Shape& b);
  const Variable* compatible(const Variable& with, bool sameType);
  std::vector<int> anyAxes(int rank);
  // Along axis 0 a scalar is a line of one element.
  int anyAxis(const Shape& shape) { return below(std::max(shape.ndim(), 1)); }
  static Dim lengthOf(const Shape& shape, int axis) {
    return axis < shape.ndim() ? shape[axis] : 1;
  }
  double anyNumber();
  // f(number) of any of the types that operators take, or of integers and truth values alone; not 0
  // unless it may be.
  template <class F>
  Tensor withNumber(bool mayBeZero, bool whole, F f);

  // ---- Variables ----
  std::string define(Value value, const std::string& text);
  void input(const Shape& shape, dtype type);
  void read(const Variable& variable);
  void withinBudget(const std::function<void()>& work) const;
  void written(const Variable& target, const Value& source);
  // A small value that convolutions and pools take.
  static bool isImage(const Variable& variable);
  // x moved into the row's domain if the program is tame.
  Value attentionWeights(const Value& query, const Value& key, const Value* mask);
  Value intoDomain(const UnaryRow& row, const Value& x);
  // Floats away from 0 if the program is tame; else they are exact no longer, as quotients tell
  // zeros of either sign apart, which may stand for each other.
  Value asDivisor(const Value& x);

  // ---- Statements; false if nothing fits ----
  // One of the statements, by weight.
  size_t pick(const std::vector<Weighted>& statements);
  // Statement `number`; each draws from streams of its own, so that it stays what it is where
  // others are left out.
  void runStatement(int number);
  // Another statement on an input of its own, so that every operator meets every dtype.
  bool focus();
  bool makeInput();
  bool makeRandom();
  bool makeSequence();
  bool applyUnary();
  bool applyBinary();
  bool applyScalar();
  bool updateScalar();
  bool applyNumberForms();
  bool applyPowerOfNumber();
  bool applyCast();
  bool applyWhere();
  bool applyReduce();
  bool applySoftmax();
  bool applyLayerNorm();
  bool applyMatmul();
  void joinProducts(const std::function<Value()>& product);
  bool applyPool();
  bool applyConvolution();
  bool applyAttention();
  bool applySparse();
  bool applyBatchnorm();
  bool applyRnn();
  bool applyReshape();
  bool applyTranspose();
  bool applySlice();
  bool applyConcatenate();
  bool applyPad();
  bool applyTile();
  bool applyFlip();
  bool applyLookup();
  bool updateLookup();
  bool applyFlat();
  bool updateFlat();
  bool applySort();
  bool applyExtremes();
  bool applyCumsum();
  bool applyMedian();
  bool applyRoll();
  bool applyTriangle();
  bool copyVariable();
  bool updateWhole();
  bool updateView();
  bool readAny();
  bool readScalar();
  bool lockAny();
  bool dropAny();
  bool endSegment();
  bool askAny();
  bool orderAny();
  bool applyDefinition();
  // What the program was told, beside the elements that it reads.
  void answer(const std::string& question, const std::string& said, bool exact);
  std::vector<Index> anyIndices(const Shape& shape, std::string* text);
  range anyRange(Dim size, std::string* text, const char* separator);
  std::vector<Index> anyLookup(const Shape& shape, std::string* text);
  Tensor anyMask(const Shape& shape);
  Tensor anyPlaces(Dim size);

  const ProgramOptions options_;
  std::mt19937_64 structure_;
  std::mt19937_64 data_;
  Tracker tracker_;
  bool tame_;
  bool dense_;
  bool focused_ = false;
  Shape base_;  // most shapes derive from it
  dtype mainType_;
  std::vector<Variable> variables_;
  std::vector<HostValue> reads_;
  std::string text_;
  int names_ = 0;
  int storages_ = 0;
};

}  // namespace fl::testing
