// FL_DUMP=dir: every stage of every plan as numbered .flir files that parse back, and the code of
// its kernels.
//
// A dump never stops the program: what cannot be written is warned about once, and nothing more is
// written to that folder. Each file appears complete or not at all.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "fl/kernel/Artifact.h"
#include "fl/runtime/Device.h"

namespace fl::lazy {

class PlanDump {
 public:
  // By parameter, what the first run has for it; null for tensors.
  using Numbers = std::vector<const Number*>;
  // Makes the folder <dir>/plan<number> if FL_DUMP is set. The number is the first that is free:
  // plans of all engines and of earlier processes keep theirs. Called under engineMutex().
  explicit PlanDump(const Numbers& numbers);
  // Writes <stage>_<pass>.flir there, with a comment of the numbers, "// numbers: p1=0.5 p4=7", in
  // front, which `fl run` takes as inputs; empty if nothing is dumped.
  std::function<void(int number, const std::string& pass, const std::string& text)> observer()
      const;

  // Writes k<number>.ll and k<number>.s there, LLVM IR and assembly of each kernel as it is
  // compiled for the plan; of one that is in several variants k<number>_1 and so on, too. For a GPU
  // .cu, and .ptx where NVRTC is there.
  void writeCode(const runtime::LoadedSchedule& plan, const ir::Target& target) const;

 private:
  std::string folder_, numbers_;
};

}  // namespace fl::lazy
