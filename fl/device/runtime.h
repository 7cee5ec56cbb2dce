// All of the devices and streams: Flashlight's fl/runtime, whose headers have the same names here.
// The room fl/runtime of this library is what runs compiled programs, and no program includes it.
#pragma once

#include "fl/device/Device.h"
#include "fl/device/DeviceManager.h"
#include "fl/device/DeviceType.h"
#include "fl/device/Stream.h"
#include "fl/device/SynchronousStream.h"
