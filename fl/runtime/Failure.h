// What a failure of the compiler leaves behind. The program goes on with what runs instead; the
// failure is counted, and told once for each line of the user's, with a file that repeats it.
#pragma once

#include <string>

#include "fl/base/CallSite.h"

namespace fl::runtime {

// `consequence` says what runs instead and `reason` why; `text`, the .flir that the compiler was
// given, is saved under failures/ in the folder of what is kept between runs, else of temporary
// files. `fl opt` repeats it, but where the program has extensions. May be called from any thread.
void reportFailure(const std::string& consequence, const std::string& reason,
                   const std::string& text, const CallSite& site);

// What is being handled, in words, whatever was thrown.
std::string caughtError();

}  // namespace fl::runtime
