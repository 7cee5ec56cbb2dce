// All of fl/contrib: modules for speech and language models.
#pragma once

#include "fl/contrib/modules/modules.h"
