// The meters with Flashlight's exact types and default arguments. Compared with the headers of
// flashlight/fl/meter. Nothing runs.
#include <utility>
#include <vector>

#include "fl/meter/meters.h"
#include "tests/ExactTypes.h"

namespace fl::test {
namespace {

using T = const Tensor&;
using std::declval;

FL_TAKES(AverageValueMeter, 0);
FL_METHOD(AverageValueMeter::add, void (AverageValueMeter::*)(const double, const double));
FL_METHOD(AverageValueMeter::add, void (AverageValueMeter::*)(T));
FL_CALL(declval<AverageValueMeter&>().add(1.0), void);
FL_METHOD(AverageValueMeter::value, std::vector<double> (AverageValueMeter::*)() const);
FL_METHOD(AverageValueMeter::reset, void (AverageValueMeter::*)());

FL_TAKES(CountMeter, 1, int);
static_assert(!std::is_convertible_v<int, CountMeter>);
FL_METHOD(CountMeter::add, void (CountMeter::*)(int, int64_t));
FL_METHOD(CountMeter::value, std::vector<int64_t> (CountMeter::*)() const);
FL_METHOD(CountMeter::reset, void (CountMeter::*)());

FL_TAKES(EditDistanceMeter, 0);
using Errors = EditDistanceMeter::ErrorState;
FL_TAKES(Errors, 0);
FL_METHOD(Errors::sum, int64_t (Errors::*)() const);
static_assert(std::is_same_v<decltype(Errors::ndel), int64_t> &&
              std::is_same_v<decltype(Errors::nins), int64_t> &&
              std::is_same_v<decltype(Errors::nsub), int64_t>);
FL_METHOD(EditDistanceMeter::add, void (EditDistanceMeter::*)(T, T));
FL_METHOD(EditDistanceMeter::add,
          void (EditDistanceMeter::*)(const int64_t, const int64_t, const int64_t, const int64_t));
FL_METHOD(EditDistanceMeter::add, void (EditDistanceMeter::*)(const Errors&, const int64_t));
FL_CALL(declval<EditDistanceMeter&>().add(declval<const int*>(), declval<const int*>(), size_t{2},
                                          size_t{3}),
        void);
FL_CALL(declval<EditDistanceMeter&>().add(declval<const std::vector<char>&>(),
                                          declval<const std::vector<char>&>()),
        void);
FL_METHOD(EditDistanceMeter::errorRate, std::vector<double> (EditDistanceMeter::*)() const);
FL_METHOD(EditDistanceMeter::value, std::vector<int64_t> (EditDistanceMeter::*)() const);
FL_METHOD(EditDistanceMeter::reset, void (EditDistanceMeter::*)());

FL_TAKES(FrameErrorMeter, 0, bool);
static_assert(!std::is_convertible_v<bool, FrameErrorMeter>);
FL_METHOD(FrameErrorMeter::add, void (FrameErrorMeter::*)(T, T));
FL_METHOD(FrameErrorMeter::value, double (FrameErrorMeter::*)() const);
FL_METHOD(FrameErrorMeter::reset, void (FrameErrorMeter::*)());

FL_TAKES(MSEMeter, 0);
FL_METHOD(MSEMeter::add, void (MSEMeter::*)(T, T));
FL_METHOD(MSEMeter::value, double (MSEMeter::*)() const);
FL_METHOD(MSEMeter::reset, void (MSEMeter::*)());

FL_TAKES(TimeMeter, 0, bool);
static_assert(!std::is_convertible_v<bool, TimeMeter>);
FL_METHOD(TimeMeter::value, double (TimeMeter::*)() const);
FL_METHOD(TimeMeter::reset, void (TimeMeter::*)());
FL_METHOD(TimeMeter::incUnit, void (TimeMeter::*)(int64_t));
FL_CALL(declval<TimeMeter&>().incUnit(), void);
FL_METHOD(TimeMeter::resume, void (TimeMeter::*)());
FL_METHOD(TimeMeter::stop, void (TimeMeter::*)());
FL_METHOD(TimeMeter::set, void (TimeMeter::*)(double, int64_t));
FL_CALL(declval<TimeMeter&>().set(1.0), void);
FL_METHOD(TimeMeter::stopAndIncUnit, void (TimeMeter::*)(int64_t));
FL_CALL(declval<TimeMeter&>().stopAndIncUnit(), void);

FL_TAKES(TopKMeter, 1, int);
static_assert(!std::is_convertible_v<int, TopKMeter>);
FL_METHOD(TopKMeter::add, void (TopKMeter::*)(T, T));
FL_METHOD(TopKMeter::reset, void (TopKMeter::*)());
FL_METHOD(TopKMeter::set, void (TopKMeter::*)(int32_t, int32_t));
FL_METHOD(TopKMeter::getStats, std::pair<int32_t, int32_t> (TopKMeter::*)());
FL_METHOD(TopKMeter::value, double (TopKMeter::*)() const);

}  // namespace
}  // namespace fl::test
