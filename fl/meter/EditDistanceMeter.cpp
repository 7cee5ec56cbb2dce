#include "fl/meter/EditDistanceMeter.h"

#include <limits>

#include "fl/base/CallSite.h"
#include "fl/base/Error.h"

namespace fl {

void EditDistanceMeter::add(const Tensor& output, const Tensor& target) {
  FL_API_ENTRY();
  FL_USER_CHECK(output.ndim() == 1 && target.ndim() == 1 && !isFloating(output.type()) &&
                    !isFloating(target.type()),
                "EditDistanceMeter: output ", typeToString(output.type(), output.shape()),
                " and target ", typeToString(target.type(), target.shape()),
                " must be 1-D and of integers");
  pending_.emplace_back(output.astype(dtype::s64), target.astype(dtype::s64));
}

void EditDistanceMeter::add(const int64_t n, const int64_t ndel, const int64_t nins,
                            const int64_t nsub) {
  totals_.add({ndel, nins, nsub}, n);
}

const EditDistanceMeter::Totals& EditDistanceMeter::totals() const {
  while (!pending_.empty()) {
    // What cannot be read stays pending.
    const auto output = pending_.back().first.toHostVector<long long>();
    const auto target = pending_.back().second.toHostVector<long long>();
    pending_.pop_back();
    totals_.add(errors(output.data(), target.data(), output.size(), target.size()),
                static_cast<int64_t>(target.size()));
  }
  return totals_;
}

std::vector<int64_t> EditDistanceMeter::value() const {
  FL_API_ENTRY();
  const auto& [length, errors] = totals();
  return {errors.sum(), length, errors.ndel, errors.nins, errors.nsub};
}

std::vector<double> EditDistanceMeter::errorRate() const {
  FL_API_ENTRY();
  const auto& [length, errors] = totals();
  const auto percent = [length = static_cast<double>(length)](int64_t count) {
    if (length > 0) {
      return 100 * static_cast<double>(count) / length;
    }
    return count > 0 ? std::numeric_limits<double>::infinity() : 0;
  };
  return {percent(errors.sum()), static_cast<double>(length), percent(errors.ndel),
          percent(errors.nins), percent(errors.nsub)};
}

void EditDistanceMeter::reset() { *this = EditDistanceMeter(); }

}  // namespace fl
