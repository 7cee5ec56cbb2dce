#include "fl/base/Log.h"

#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "fl/base/Flags.h"

namespace fl {
namespace {

struct Log {
  int level = 0;
  std::FILE* file = stderr;

  Log() {
    const std::string& spec = flags().log;
    if (spec.empty()) return;
    const size_t comma = spec.find(',');
    level = static_cast<int>(Flags::toInt("FL_LOG", spec.substr(0, comma)));
    if (comma == std::string::npos) return;
    file = std::fopen(spec.substr(comma + 1).c_str(), "a");
    if (!file) throw std::invalid_argument("FL_LOG: cannot write " + spec.substr(comma + 1));
    std::setvbuf(file, nullptr, _IONBF, 0);  // no child has a part of a line
  }
};

Log& instance() {
  static auto& log = *new Log();
  return log;
}

}  // namespace

bool logEnabled(int level) { return instance().level >= level; }

void logLine(int level, const std::string& message) {
  if (logEnabled(level)) std::fprintf(instance().file, "%s\n", message.c_str());
}

void logWarning(const std::string& message) { std::fprintf(stderr, "fl: %s\n", message.c_str()); }

}  // namespace fl
