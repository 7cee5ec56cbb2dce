#include "fl/library/PoolWindows.h"

#include <cstring>

// Everything here has internal linkage or is of the variant's namespace.
namespace fl::library::FL_LOOPS_VARIANT {
namespace {

#ifdef __AVX512F__
constexpr int kVectorLanes = 16;
#else
constexpr int kVectorLanes = 8;
#endif
// Vectors of neighbouring lanes that a window's elements are read for at once.
constexpr int kMostLanes = 4 * kVectorLanes;

// Of so many lanes, whole vectors or less than one. GCC drops an alias template's attributes.
template <int lanes>
struct Part {
  static constexpr int kLanes = lanes < kVectorLanes ? lanes : kVectorLanes;
  static constexpr int kVectors = lanes / kLanes;
  typedef float Values __attribute__((vector_size(kLanes * sizeof(float))));
  typedef int32_t Numbers __attribute__((vector_size(kLanes * sizeof(int32_t))));

  // Calls f(i) for each vector.
  template <class F>
  static void forEach(F&& f) {
#pragma GCC unroll 4
    for (int i = 0; i < kVectors; ++i) f(i);
  }
  static Values of(float value) { return Values{} + value; }
  static Values load(const float* from, int i) {
    Values values;
    std::memcpy(&values, from + i * kLanes, sizeof(values));
    return values;
  }
  static void store(float* to, int i, Values values) {
    std::memcpy(to + i * kLanes, &values, sizeof(values));
  }
};

// Calls f<count>(first) for parts of the lanes.
template <int most = kMostLanes, class F>
void forEachPart(int64_t lanes, F&& f) {
  int64_t first = 0;
  for (; first + most <= lanes; first += most) f.template operator()<most>(first);
  if constexpr (most > 1) {
    forEachPart<most / 2>(lanes - first, [&]<int count>(int64_t lane) {
      f.template operator()<count>(first + lane);
    });
  }
}

// What a window has of an axis: elements [begin, end), perhaps behind padding.
struct Span {
  int64_t begin, end;
  bool isPadded;
};
Span spanOf(const PoolWindows& w, int axis, int64_t window) {
  const int64_t begin = window * w.strides[axis] - w.before[axis], end = begin + w.kernel[axis];
  return {begin < 0 ? 0 : begin, end < w.in[axis] ? end : w.in[axis], begin < 0};
}

struct Window {
  const PoolWindows& all;
  Span rows, columns;

  bool beginsWithPadding() const { return rows.isPadded || columns.isPadded; }
  // Calls f(offset) for the elements in order.
  template <class F>
  void forEach(F&& f) const {
    for (int64_t y = rows.begin; y < rows.end; ++y)
      for (int64_t x = columns.begin; x < columns.end; ++x) f((y * all.in[1] + x) * all.lanes);
  }
  // Of a mean's elements. To multiply is faster, and exact by the inverse of a power of two.
  template <class Values>
  Values divide(Values sum) const {
    const int64_t count = all.countsPadding
                              ? all.kernel[0] * all.kernel[1]
                              : (rows.end - rows.begin) * (columns.end - columns.begin);
    const auto divisor = static_cast<float>(count);
    return (count & (count - 1)) == 0 ? sum * (1 / divisor) : sum / divisor;
  }
};

// For every window, and the lanes in parts: f<lanes>(window, offset of the lanes, that of the
// window's result).
template <class F>
void forEachWindow(const PoolWindows& w, F&& f) {
  for (int64_t y = 0; y < w.out[0]; ++y) {
    const Span rows = spanOf(w, 0, y);
    forEachPart(w.lanes, [&]<int lanes>(int64_t lane) {
      for (int64_t x = 0; x < w.out[1]; ++x)
        f.template operator()<lanes>(Window{w, rows, spanOf(w, 1, x)}, lane,
                                     (y * w.out[1] + x) * w.lanes + lane);
    });
  }
}

// A maximum gives way to what is larger or NaN, but not if it is NaN itself. Tells where it does.
template <class Values>
auto raise(Values& maximum, Values by) {
  const auto givesWay = (maximum == maximum) & ~(by <= maximum);
  maximum = givesWay ? by : maximum;
  return givesWay;
}

// Whether each element is in one window.
bool isTiled(const PoolWindows& w) {
  bool is = true;
  for (int i = 0; i < 2; ++i)
    is &= w.kernel[i] == w.strides[i] && w.before[i] == 0 && w.in[i] == w.out[i] * w.kernel[i];
  return is;
}

}  // namespace

void pool(const PoolWindows& w, const float* input, float* output) {
  forEachWindow(w, [&]<int lanes>(const Window& window, int64_t lane, int64_t out) {
    using Part = Part<lanes>;
    typename Part::Values values[Part::kVectors];
    typename Part::Numbers isNan[Part::kVectors] = {};  // apart: nothing waits for it
    Part::forEach([&](int i) { values[i] = Part::of(w.isMaximum ? -__builtin_inff() : 0.0f); });
    window.forEach([&](int64_t offset) {
      Part::forEach([&](int i) {
        const auto value = Part::load(input + lane + offset, i);
        if (w.isMaximum) {
          isNan[i] |= value != value;
          values[i] = value > values[i] ? value : values[i];
        } else {
          values[i] += value;
        }
      });
    });
    Part::forEach([&](int i) {
      const auto maximum = isNan[i] ? Part::of(__builtin_nanf("")) : values[i];
      Part::store(output + out, i, w.isMaximum ? maximum : window.divide(values[i]));
    });
  });
}

void spread(const PoolWindows& w, const float* gradOutput, const float* input, float* gradInput) {
  const bool adds = !isTiled(w);
  int64_t cleared = adds ? 0 : w.in[0];  // rows
  const auto clearTo = [&](int64_t end) {
    const int64_t row = w.in[1] * w.lanes;
    for (; cleared < end; ++cleared) std::memset(gradInput + cleared * row, 0, row * sizeof(float));
  };
  forEachWindow(w, [&]<int lanes>(const Window& window, int64_t lane, int64_t out) {
    using Part = Part<lanes>;
    typename Part::Values gradients[Part::kVectors], maxima[Part::kVectors];
    // Which element of the window each goes to, from 1 on; 0 is all those of a mean.
    typename Part::Numbers places[Part::kVectors];
    Part::forEach([&](int i) {
      const auto gradient = Part::of(0) + Part::load(gradOutput + out, i);
      gradients[i] = w.isMaximum ? gradient : window.divide(gradient);
      maxima[i] = Part::of(-__builtin_inff());
      places[i] = typename Part::Numbers{} + (w.isMaximum && !window.beginsWithPadding() ? 1 : 0);
    });
    int32_t number = 0;
    if (w.isMaximum) {
      window.forEach([&](int64_t offset) {
        ++number;
        Part::forEach([&](int i) {
          const auto isLarger = raise(maxima[i], Part::load(input + lane + offset, i));
          places[i] = isLarger ? typename Part::Numbers{} + number : places[i];
        });
      });
    }
    clearTo(window.rows.end);
    number = 0;
    window.forEach([&](int64_t offset) {
      number += w.isMaximum;
      float* const to = gradInput + offset + lane;
      Part::forEach([&](int i) {
        const auto share = places[i] == number ? gradients[i] : Part::of(0);
        Part::store(to, i, adds ? Part::load(to, i) + share : share);
      });
    });
  });
  clearTo(w.in[0]);
}

}  // namespace fl::library::FL_LOOPS_VARIANT
