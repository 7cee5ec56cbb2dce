// All of fl/meter.
#pragma once

#include "fl/meter/AverageValueMeter.h"
#include "fl/meter/CountMeter.h"
#include "fl/meter/EditDistanceMeter.h"
#include "fl/meter/FrameErrorMeter.h"
#include "fl/meter/MSEMeter.h"
#include "fl/meter/TimeMeter.h"
#include "fl/meter/TopKMeter.h"
