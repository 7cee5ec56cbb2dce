// All of fl/meter.
#pragma once

#include "fl/meter/AverageValueMeter.h"
#include "fl/meter/CountMeter.h"
#include "fl/meter/FrameErrorMeter.h"
#include "fl/meter/TimeMeter.h"
