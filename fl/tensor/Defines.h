// Enumerations that operators and modules share.
#pragma once

// Flashlight's mark of what a shared library exports; fl is linked statically.
#define FL_API

namespace fl {

enum class ReduceMode { NONE = 0, MEAN = 1, SUM = 2 };
enum class PoolingMode { MAX = 0, AVG_INCLUDE_PADDING = 1, AVG_EXCLUDE_PADDING = 2 };
enum class RnnMode { RELU = 0, TANH = 1, LSTM = 2, GRU = 3 };
// SAME pads so that the output is as large as the input divided by the stride, rounded up (and one
// more where the total padding is odd, as in Flashlight).
enum class PaddingMode { SAME = -1 };

}  // namespace fl
