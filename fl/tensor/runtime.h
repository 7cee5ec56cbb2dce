// All of the devices and streams. Headers of Flashlight's fl/runtime are here, in fl/tensor: the
// room fl/runtime of this library is what runs compiled programs, and no program includes it.
#pragma once

#include "fl/tensor/Device.h"
#include "fl/tensor/DeviceManager.h"
#include "fl/tensor/DeviceType.h"
#include "fl/tensor/Stream.h"
#include "fl/tensor/SynchronousStream.h"
