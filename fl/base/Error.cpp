#include "fl/base/Error.h"

#include "fl/base/CallSite.h"

namespace fl::detail {

std::string withCallSite(const std::string& message) {
  const std::string site = currentCallSite().toString();
  return site.empty() ? message : message + ", at " + site;
}

void throwInternal(const char* file, int line, const char* condition, const std::string& message) {
  throw InternalError(concat(kInternal, file, ":", line, ": ", condition, " does not hold",
                             message.empty() ? "" : ": ", message, kReportIt));
}

void throwNoEnumerator(const char* function, const char* type, int value) {
  throwUser(calledAs(function), ": ", value, " is no ", type);
}

}  // namespace fl::detail
