// dtype and its traits, where programs for Flashlight look for them.
#pragma once

#include "fl/base/Types.h"
