// All of fl/nn.
#pragma once

#include "fl/nn/Init.h"
#include "fl/nn/Serialization.h"
#include "fl/nn/Utils.h"
#include "fl/nn/modules/Activations.h"
#include "fl/nn/modules/Container.h"
#include "fl/nn/modules/Conv2D.h"
#include "fl/nn/modules/Dropout.h"
#include "fl/nn/modules/Linear.h"
#include "fl/nn/modules/Loss.h"
#include "fl/nn/modules/Module.h"
#include "fl/nn/modules/Pool2D.h"
#include "fl/nn/modules/Transform.h"
#include "fl/nn/modules/View.h"
