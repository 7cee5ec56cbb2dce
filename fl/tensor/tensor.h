// All of the tensor API.
#pragma once

#include "fl/device/runtime.h"
#include "fl/tensor/Composite.h"
#include "fl/tensor/Compute.h"
#include "fl/tensor/DefaultTensorType.h"
#include "fl/tensor/Defines.h"
#include "fl/tensor/Index.h"
#include "fl/tensor/Init.h"
#include "fl/tensor/Profile.h"
#include "fl/tensor/Random.h"
#include "fl/tensor/Shape.h"
#include "fl/tensor/TensorAdapter.h"
#include "fl/tensor/TensorBackend.h"
#include "fl/tensor/TensorBase.h"
#include "fl/tensor/TensorExtension.h"
#include "fl/tensor/Types.h"
