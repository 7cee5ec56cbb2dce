#include "fl/runtime/MemoryManagerAdapter.h"

#include <utility>

#include "fl/base/Error.h"

namespace fl {

MemoryManagerAdapter::MemoryManagerAdapter(std::shared_ptr<MemoryManagerDeviceInterface> functions,
                                           std::ostream* logStream)
    : deviceInterface(std::move(functions)),
      loggingEnabled_(logStream != nullptr),
      logStream_(logStream) {
  FL_USER_CHECK(deviceInterface != nullptr,
                "MemoryManagerAdapter: the device interface must not be null");
}

MemoryManagerAdapter::~MemoryManagerAdapter() { flushLog(); }

void MemoryManagerAdapter::setLogStream(std::ostream* logStream) {
  std::lock_guard lock(logMutex_);
  flushLog();
  logStream_ = logStream;
}

std::ostream* MemoryManagerAdapter::getLogStream() const {
  std::lock_guard lock(logMutex_);
  return logStream_;
}

void MemoryManagerAdapter::setLoggingEnabled(bool log) {
  std::lock_guard lock(logMutex_);
  flushLog();
  loggingEnabled_ = log;
}

void MemoryManagerAdapter::setLogFlushInterval(size_t interval) {
  FL_USER_CHECK(interval > 0,
                "MemoryManagerAdapter::setLogFlushInterval: the interval must not be 0");
  std::lock_guard lock(logMutex_);
  logFlushInterval_ = interval;
}

void MemoryManagerAdapter::addLogLine(const std::string& line) {
  std::lock_guard lock(logMutex_);
  (logLines_ += line) += '\n';
  if (++logLineCount_ >= logFlushInterval_) flushLog();
}

void MemoryManagerAdapter::flushLog() {
  if (logLines_.empty()) return;
  (logStream_ ? *logStream_ : std::cerr) << logLines_ << std::flush;
  logLines_.clear();
  logLineCount_ = 0;
}

}  // namespace fl
