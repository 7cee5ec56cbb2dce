#include "fl/ir/Interpreter.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <type_traits>

#include "fl/base/Error.h"
#include "fl/ir/HostBuilder.h"
#include "fl/ir/Inference.h"
#include "fl/ir/LongSum.h"
#include "fl/ir/Meaning.h"
#include "fl/ir/Philox.h"

namespace fl::ir {
namespace {

// Elements of one dtype, widened: floats to double.
template <typename T>
using Wide = std::conditional_t<std::is_integral_v<T>, T, double>;

template <typename T>
Wide<T> load(const void* data, Dim index) {
  const T& element = static_cast<const T*>(data)[index];
  if constexpr (std::is_same_v<T, bfloat16> || std::is_same_v<T, half>) {
    return static_cast<double>(static_cast<float>(element));
  } else {
    return element;
  }
}

template <typename T>
void store(void* data, Dim index, Wide<T> value) {
  if constexpr (std::is_same_v<T, bfloat16> || std::is_same_v<T, half>) {
    static_cast<T*>(data)[index] = T(static_cast<float>(value));
  } else {
    static_cast<T*>(data)[index] = static_cast<T>(value);
  }
}

// Visits every index of `shape` in column-major order with the element offset that `strides` give.
class Odometer {
 public:
  Odometer(const Shape& shape, std::vector<std::vector<Dim>> strides)
      : shape_(shape),
        strides_(std::move(strides)),
        index_(shape.ndim(), 0),
        offsets_(strides_.size(), 0) {}

  const std::vector<Dim>& offsets() const { return offsets_; }
  const std::vector<Dim>& index() const { return index_; }
  void next() {
    for (int axis = 0; axis < shape_.ndim(); ++axis) {
      const bool carry = ++index_[axis] == shape_[axis];
      for (size_t k = 0; k < strides_.size(); ++k) {
        offsets_[k] += strides_[k][axis] * (carry ? 1 - shape_[axis] : 1);
      }
      if (!carry) return;
      index_[axis] = 0;
    }
  }

 private:
  const Shape& shape_;
  std::vector<std::vector<Dim>> strides_;
  std::vector<Dim> index_;
  std::vector<Dim> offsets_;
};

// Strides of `from` seen under the index of `to`: 0 along repeated dimensions.
std::vector<Dim> broadcastStrides(const Shape& from, const Shape& to) {
  std::vector<Dim> strides = contiguousStrides(from);
  strides.resize(to.ndim(), 0);
  for (int axis = 0; axis < from.ndim(); ++axis) {
    if (from[axis] == 1) strides[axis] = 0;
  }
  return strides;
}

void copyElement(void* to, Dim toIndex, const void* from, Dim fromIndex, size_t size) {
  std::memcpy(static_cast<char*>(to) + toIndex * size,
              static_cast<const char*>(from) + fromIndex * size, size);
}

// A gather or scatter of whole elements: to[base + odometer] = from[base + odometer].
void copyStrided(const Shape& space, void* to, Dim toBase, std::vector<Dim> toStrides,
                 const void* from, Dim fromBase, std::vector<Dim> fromStrides, size_t size) {
  Odometer odometer(space, {std::move(toStrides), std::move(fromStrides)});
  for (Dim i = 0; i < space.elements(); ++i, odometer.next()) {
    copyElement(to, toBase + odometer.offsets()[0], from, fromBase + odometer.offsets()[1], size);
  }
}

struct Execution {
  Op op;
  const std::vector<HostOperand>& operands;
  const Attrs& attrs;
  const ValueType& type;
  void* result;

  const Shape& shape(size_t i) const { return operands[i].type->shape; }
  const void* data(size_t i) const { return operands[i].data; }
  size_t size() const { return getTypeSize(type.type); }
  Dim start(size_t i) const { return *static_cast<const int64_t*>(operands[i].data); }
};

// True if the table gives `M` a meaning on elements of type T.
template <class M, typename T>
constexpr bool definedOn() {
  return M::info.types == Types::All || (M::info.types == Types::Integer) == std::is_integral_v<T>;
}

template <class M>
void elementwise(const Execution& e) {
  const size_t last = e.operands.size() - 1;
  std::vector<std::vector<Dim>> strides;
  for (const HostOperand& operand : e.operands) {
    strides.push_back(broadcastStrides(operand.type->shape, e.type.shape));
  }
  Odometer odometer(e.type.shape, strides);
  HostBuilder builder;
  dispatchType(e.operands[last].type->type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (definedOn<M, T>()) {
      for (Dim i = 0; i < e.type.shape.elements(); ++i, odometer.next()) {
        const auto& at = odometer.offsets();
        const Wide<T> z = load<T>(e.data(last), at[last]);
        if constexpr (M::info.kind == Kind::Select) {
          const bool condition = load<char>(e.data(0), at[0]) != 0;
          store<T>(e.result, i, M::apply(builder, condition, load<T>(e.data(1), at[1]), z));
        } else if constexpr (M::info.result == Result::Bool) {
          store<char>(e.result, i, M::apply(builder, load<T>(e.data(0), at[0]), z, z));
        } else {
          store<T>(e.result, i, M::apply(builder, load<T>(e.data(0), at[0]), z, z));
        }
      }
    }
  });
}

void interpretElementwise(const Execution& e) {
  withMeaning(e.op, [&]<class M>(M) {
    constexpr Kind kind = M::info.kind;
    if constexpr (kind == Kind::Unary || kind == Kind::Binary || kind == Kind::Select) {
      elementwise<M>(e);
    }
  });
}

// Conversion rules are Cast's row: to b8 is != 0, float to integer saturates and NaN is 0.
template <typename To, typename From>
Wide<To> convert(From value, dtype to) {
  if (to == dtype::b8) return value != From(0);
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    constexpr auto low = static_cast<double>(std::numeric_limits<To>::min());
    constexpr auto high = static_cast<double>(std::numeric_limits<To>::max());
    return std::isnan(value) ? To(0)
           : value <= low    ? std::numeric_limits<To>::min()
           : value >= high   ? std::numeric_limits<To>::max()
                             : static_cast<To>(value);
  } else if constexpr (std::is_integral_v<From> && !std::is_integral_v<To> &&
                       !std::is_same_v<To, double>) {
    // Through double, 64-bit integers would be rounded twice.
    return static_cast<float>(value);
  } else {
    return static_cast<Wide<To>>(value);
  }
}

void interpretCast(const Execution& e) {
  dispatchType(e.operands[0].type->type, [&](auto fromTag) {
    dispatchType(e.type.type, [&](auto toTag) {
      using From = typename decltype(fromTag)::type;
      using To = typename decltype(toTag)::type;
      for (Dim i = 0; i < e.type.shape.elements(); ++i) {
        store<To>(e.result, i, convert<To>(load<From>(e.data(0), i), e.type.type));
      }
    });
  });
}

void interpretIota(const Execution& e) {
  std::vector<Dim> strides(e.type.shape.ndim(), 0);
  if (!strides.empty()) strides[e.attrs[1]] = 1;
  Odometer odometer(e.type.shape, {strides});
  dispatchType(e.type.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (Dim i = 0; i < e.type.shape.elements(); ++i, odometer.next()) {
      store<T>(e.result, i, convert<T>(odometer.offsets()[0], e.type.type));
    }
  });
}

// Philox4x32-10: J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
std::array<uint32_t, 4> philox(uint64_t seed, uint64_t offset, uint64_t block) {
  std::array<uint32_t, 4> c = {static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32),
                               static_cast<uint32_t>(offset), static_cast<uint32_t>(offset >> 32)};
  uint32_t key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = 0xD2511F53ull * c[0], b = 0xCD9E8D57ull * c[2];
    c = {static_cast<uint32_t>(b >> 32) ^ c[1] ^ key0, static_cast<uint32_t>(b),
         static_cast<uint32_t>(a >> 32) ^ c[3] ^ key1, static_cast<uint32_t>(a)};
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  return c;
}

// Number `i` of a type, in (0, 1] for floats.
template <class T>
T uniformNumber(uint64_t seed, uint64_t offset, Dim i) {
  if constexpr (std::is_same_v<T, double>) {
    const auto words = philox(seed, offset, i >> 1);
    const uint64_t word = static_cast<uint64_t>(words[2 * (i & 1)]) << 32 | words[2 * (i & 1) + 1];
    return static_cast<double>((word >> 11) + 1) * 0x1p-53;
  } else {
    const uint32_t word = philox(seed, offset, i >> 2)[i & 3];
    if constexpr (std::is_same_v<T, float>) {
      return static_cast<float>(static_cast<double>((word >> 8) + 1) * 0x1p-24);
    } else {
      return word;
    }
  }
}

// Our vector math in the element's own precision: random numbers are defined by their bits.
class BitwiseBuilder : public HostBuilder {
 public:
  template <class V>
  static V negate(V x) {
    return -x;
  }
  template <class V>
  static V magnitude(V x) {
    return std::fabs(x);
  }
  template <class V>
  static V fma(V x, V y, V z) {
    return std::fma(x, y, z);
  }
  template <class V>
  static V bitNot(V x) {
    return ~x;
  }
  template <dtype type, class V>
  static auto castTo(V x) {
    if constexpr (type == dtype::f32) {
      return static_cast<float>(x);
    } else if constexpr (type == dtype::f64) {
      return static_cast<double>(x);
    } else if constexpr (type == dtype::s64) {
      return static_cast<int64_t>(x);
    } else {
      return static_cast<uint64_t>(x);
    }
  }
  static int32_t bits(float x) { return std::bit_cast<int32_t>(x); }
  static int64_t bits(double x) { return std::bit_cast<int64_t>(x); }
  static float fromBits(int32_t x) { return std::bit_cast<float>(x); }
  static double fromBits(int64_t x) { return std::bit_cast<double>(x); }
  // No angle of a random number is huge.
  template <class Usual, class Rare>
  static auto rarely(bool, Usual&& usual, Rare&&) {
    return usual();
  }
};

template <class T>
void fillRandom(const Execution& e) {
  const auto number = [&](int k) { return static_cast<uint64_t>(e.start(k)); };
  BitwiseBuilder b;
  for (Dim i = 0; i < e.type.shape.elements(); ++i) {
    T value = uniformNumber<T>(number(0), number(1), i);
    if constexpr (std::is_floating_point_v<T>) {
      if (e.operands.size() > 2) {
        value = vm::normalNumber(b, value, uniformNumber<T>(number(0), number(2), i));
      }
    }
    store<T>(e.result, i, value);
  }
}

void interpretRandom(const Execution& e) {
  switch (e.type.type) {
    case dtype::u32:
      return fillRandom<uint32_t>(e);
    case dtype::f32:
      return fillRandom<float>(e);
    default:
      return fillRandom<double>(e);
  }
}

void interpretView(const Execution& e) {
  const Shape& in = e.shape(0);
  const Shape& out = e.type.shape;
  const std::vector<Dim> inStrides = contiguousStrides(in);
  std::vector<Dim> strides(out.ndim(), 0);
  Dim base = 0;
  if (e.op == Op::Broadcast) {
    strides = broadcastStrides(in, out);
  } else if (e.op == Op::Reshape) {
    strides = contiguousStrides(out);
  } else if (e.op == Op::Transpose) {
    for (int i = 0; i < out.ndim(); ++i) strides[i] = inStrides[e.attrs[i]];
  } else if (e.op == Op::Slice) {
    const int rank = out.ndim();
    for (int i = 0; i < rank; ++i) {
      base +=
          (statesStarts(e.attrs, rank) ? e.attrs[1 + 2 * rank + i] : e.start(1 + i)) * inStrides[i];
      strides[i] = inStrides[i] * e.attrs[1 + rank + i];
    }
  } else {
    FL_INTERNAL_CHECK(e.op == Op::Window, opName(e.op));
    for (int i = 0; i < 2; ++i) {
      strides[i] = inStrides[i] * e.attrs[4 + i];
      strides[2 + i] = inStrides[i] * e.attrs[2 + i];
    }
    std::copy(inStrides.begin() + 2, inStrides.end(), strides.begin() + 4);
  }
  copyStrided(out, e.result, 0, contiguousStrides(out), e.data(0), base, strides, e.size());
}

void interpretGather(const Execution& e) {
  const Dim axis = e.attrs[0], bound = e.shape(0)[axis];
  const Dim stride = contiguousStrides(e.shape(0))[axis];
  std::vector<Dim> strides = broadcastStrides(e.shape(0), e.type.shape);
  strides[axis] = 0;
  Odometer odometer(e.type.shape, {strides, broadcastStrides(e.shape(1), e.type.shape)});
  for (Dim i = 0; i < e.type.shape.elements(); ++i, odometer.next()) {
    const Dim index = static_cast<const int64_t*>(e.data(1))[odometer.offsets()[1]];
    if (index < 0 || index >= bound) throw IndexOutOfRange({index, bound});
    copyElement(e.result, i, e.data(0), odometer.offsets()[0] + index * stride, e.size());
  }
}

void interpretJoin(const Execution& e) {
  const std::vector<Dim> strides = contiguousStrides(e.type.shape);
  if (e.op == Op::Pad) {
    copyStrided(e.type.shape, e.result, 0, strides, e.data(1), 0,
                std::vector<Dim>(strides.size(), 0), e.size());
    Dim base = 0;
    for (size_t i = 0; i < strides.size(); ++i) base += e.attrs[i] * strides[i];
    copyStrided(e.shape(0), e.result, base, strides, e.data(0), 0, contiguousStrides(e.shape(0)),
                e.size());
    return;
  }
  Dim base = 0;
  for (size_t i = 0; i < e.operands.size(); ++i) {
    copyStrided(e.shape(i), e.result, base * strides[e.attrs[0]], strides, e.data(i), 0,
                contiguousStrides(e.shape(i)), e.size());
    base += e.shape(i)[e.attrs[0]];
  }
}

void interpretUpdate(const Execution& e) {
  std::vector<Dim> strides = contiguousStrides(e.type.shape);
  std::memmove(e.result, e.data(0), e.type.shape.elements() * e.size());  // may be the same memory
  Dim base = 0;
  for (size_t i = 0; i < strides.size(); ++i) {
    base += e.start(2 + i) * strides[i];
    strides[i] *= e.attrs[1 + i];
  }
  copyStrided(e.shape(1), e.result, base, strides, e.data(1), 0, contiguousStrides(e.shape(1)),
              e.size());
}

// to[index] = from or, if `add`, to[index] += from, in the order of `from`; writes nothing if an
// index is bad.
void interpretScatter(const Execution& e) {
  const Dim axis = e.attrs[0], bound = e.type.shape[axis];
  std::vector<Dim> strides = contiguousStrides(e.type.shape);
  const Dim stride = strides[axis];
  strides[axis] = 0;
  const Shape& from = e.shape(2);
  Odometer odometer(from, {strides, broadcastStrides(e.shape(1), from)});
  const auto* indices = static_cast<const int64_t*>(e.data(1));
  if (from.elements() > 0) checkIndices(indices, e.shape(1).elements(), bound);
  std::memmove(e.result, e.data(0), e.type.shape.elements() * e.size());  // may be the same memory
  dispatchType(e.type.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (Dim i = 0; i < from.elements(); ++i, odometer.next()) {
      const Dim to = odometer.offsets()[0] + indices[odometer.offsets()[1]] * stride;
      const Wide<T> value = load<T>(e.data(2), i);
      store<T>(e.result, to,
               e.op == Op::ScatterAdd ? HostBuilder::add(load<T>(e.result, to), value) : value);
    }
  });
}

void interpretFold(const Execution& e) {
  const std::vector<Dim> outStrides = contiguousStrides(e.type.shape);
  std::vector<Dim> strides(e.shape(0).ndim());
  for (int i = 0; i < 2; ++i) {
    strides[i] = outStrides[i] * e.attrs[2 + i];
    strides[2 + i] = outStrides[i] * e.attrs[i];
  }
  std::copy(outStrides.begin() + 2, outStrides.end(), strides.begin() + 4);
  Odometer odometer(e.shape(0), {strides});
  dispatchType(e.type.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::vector<Wide<T>> totals(e.type.shape.elements(), 0);
    for (Dim i = 0; i < e.shape(0).elements(); ++i, odometer.next()) {
      Wide<T>& total = totals[odometer.offsets()[0]];
      total = HostBuilder::add(total, load<T>(e.data(0), i));
    }
    for (size_t i = 0; i < totals.size(); ++i) store<T>(e.result, i, totals[i]);
  });
}

void interpretUpdateKind(const Execution& e) {
  switch (e.op) {
    case Op::Update:
      return interpretUpdate(e);
    case Op::Fold:
      return interpretFold(e);
    default:
      return interpretScatter(e);
  }
}

template <class M>
void reduce(const Execution& e) {
  const std::vector<Dim> axes = e.attrs.list(1);
  // The result's strides under the operand's index: 0 along reduced axes.
  std::vector<Dim> strides = contiguousStrides(reducedShape(e.shape(0), axes, true));
  for (int i = 0; i < e.shape(0).ndim(); ++i) {
    if (axes.empty() || std::find(axes.begin(), axes.end(), i) != axes.end()) strides[i] = 0;
  }
  Odometer odometer(e.shape(0), {strides});
  HostBuilder builder;
  dispatchType(e.type.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Number init = reduceInit(e.op, e.type.type);
    Wide<T> first;
    if constexpr (std::is_integral_v<T>) {
      first = static_cast<T>(init.bits());
    } else {
      first = init.toDouble();
    }
    constexpr bool kIsLong = M::info.op == Op::Sum && !std::is_integral_v<T>;
    using Total = std::conditional_t<kIsLong, LongSum, Wide<T>>;
    std::vector<Total> totals(e.type.shape.elements(), Total(first));
    for (Dim i = 0; i < e.shape(0).elements(); ++i, odometer.next()) {
      Total& total = totals[odometer.offsets()[0]];
      const Wide<T> value = load<T>(e.data(0), i);
      if constexpr (kIsLong) {
        total.add(value);
      } else {
        total = M::apply(builder, total, value, value);
      }
    }
    for (size_t i = 0; i < totals.size(); ++i) store<T>(e.result, i, Wide<T>(totals[i]));
  });
}

void interpretReduce(const Execution& e) {
  withMeaning(e.op, [&]<class M>(M) {
    if constexpr (M::info.kind == Kind::Reduce) reduce<M>(e);
  });
}

// Calls body(offset, stride) for each line along the axis of attribute 0.
template <class F>
void forEachLine(const Execution& e, F&& body) {
  Shape starts = e.shape(0);
  starts[e.attrs[0]] = 1;
  const std::vector<Dim> strides = contiguousStrides(e.shape(0));
  Odometer odometer(starts, {strides});
  for (Dim i = 0; i < starts.elements(); ++i, odometer.next()) {
    body(odometer.offsets()[0], strides[e.attrs[0]]);
  }
}

void interpretCumsum(const Execution& e) {
  dispatchType(e.type.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    forEachLine(e, [&](Dim offset, Dim stride) {
      Wide<T> total = 0;
      for (Dim i = 0; i < e.type.shape[e.attrs[0]]; ++i) {
        const Dim at = offset + i * stride;
        total = HostBuilder::add(total, load<T>(e.data(0), at));
        store<T>(e.result, at, total);
      }
    });
  });
}

void interpretArgsort(const Execution& e) {
  const Dim length = e.shape(0)[e.attrs[0]], count = e.attrs[1];
  dispatchType(e.operands[0].type->type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    forEachLine(e, [&](Dim offset, Dim stride) {
      std::vector<int64_t> order(length);
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
        const Wide<T> x = load<T>(e.data(0), offset + i * stride);
        const Wide<T> y = load<T>(e.data(0), offset + j * stride);
        return x < y || (x == x && y != y);
      });
      // A line of the result is shorter than one of the operand.
      const Dim outer = length > 0 ? offset / (stride * length) : 0;
      const Dim result = offset - outer * stride * (length - count);
      for (Dim i = 0; i < count; ++i) store<int64_t>(e.result, result + i * stride, order[i]);
    });
  });
}

void interpretContract(const Execution& e) {
  const Dim k = e.shape(0)[0], m = e.shape(0)[1], n = e.shape(1)[1], batch = e.shape(0)[2];
  dispatchType(e.type.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* x = static_cast<const T*>(e.data(0));
    const T* y = static_cast<const T*>(e.data(1));
    for (Dim i = 0; i < m * n * batch; ++i) {
      const Dim b = i / (m * n);
      const T* row = x + (b * m + i % m) * k;
      const T* column = y + (b * n + i / m % n) * k;
      std::conditional_t<std::is_integral_v<T>, Wide<T>, LongSum> total(0);
      for (Dim j = 0; j < k; ++j) {
        const Wide<T> product = HostBuilder::mul(load<T>(row, j), load<T>(column, j));
        if constexpr (std::is_integral_v<T>) {
          total = HostBuilder::add(total, product);
        } else {
          total.add(product);
        }
      }
      store<T>(e.result, i, Wide<T>(total));
    }
  });
}

}  // namespace

void interpret(Op op, const std::vector<HostOperand>& operands, const Attrs& attrs,
               const ValueType& type, void* result) {
  const Execution e{op, operands, attrs, type, result};
  if (type.shape.elements() == 0) return;
  switch (opKind(op)) {
    case Kind::Unary:
    case Kind::Binary:
    case Kind::Select:
      return interpretElementwise(e);
    case Kind::Cast:
      return interpretCast(e);
    case Kind::Source:
      return interpretIota(e);
    case Kind::Random:
      return interpretRandom(e);
    case Kind::View:
      return interpretView(e);
    case Kind::Index:
      return interpretGather(e);
    case Kind::Join:
      return interpretJoin(e);
    case Kind::Update:
      return interpretUpdateKind(e);
    case Kind::Reduce:
      return interpretReduce(e);
    case Kind::Scan:
      return interpretCumsum(e);
    case Kind::Order:
      return interpretArgsort(e);
    case Kind::Contract:
      return interpretContract(e);
    case Kind::Library:
      FL_INTERNAL_CHECK(false, opName(op), " is not primitive");
  }
}

}  // namespace fl::ir
