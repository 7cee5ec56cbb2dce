// Initialisation of the library; calling it is allowed any number of times and optional.
#pragma once

namespace fl {

// Reads the flags, so that a wrong value is reported now. Throws std::invalid_argument.
void init();

}  // namespace fl
