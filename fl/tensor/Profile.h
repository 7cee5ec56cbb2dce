// Flashlight's name of fl/base/Profile.h.
#pragma once

#include "fl/base/Profile.h"
