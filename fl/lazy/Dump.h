// FL_DUMP=dir: every stage of every plan as numbered .flir files that parse back.
#pragma once

#include <functional>
#include <string>

namespace fl::lazy {

class PlanDump {
 public:
  // Makes the folder <dir>/plan<number> if FL_DUMP is set. Throws std::runtime_error if it cannot.
  explicit PlanDump(int number);
  // Writes <stage>_<pass>.flir there; empty if nothing is dumped.
  std::function<void(int number, const std::string& pass, const std::string& text)> observer()
      const;

 private:
  std::string folder_;
};

}  // namespace fl::lazy
