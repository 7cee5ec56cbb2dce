// Shape and Dim, where programs for Flashlight look for them.
#pragma once

#include "fl/base/Shape.h"
