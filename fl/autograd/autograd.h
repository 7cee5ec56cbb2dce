// All of fl/autograd.
#pragma once

#include "fl/autograd/Functions.h"
#include "fl/autograd/OptimMode.h"
#include "fl/autograd/Serialization.h"
#include "fl/autograd/Utils.h"
#include "fl/autograd/Variable.h"
#include "fl/autograd/tensor/AutogradOps.h"
