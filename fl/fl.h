// Everything a program needs: tensors, gradients, modules, optimizers, datasets and meters.
#pragma once

#include "fl/autograd/autograd.h"
#include "fl/data/data.h"
#include "fl/meter/meters.h"
#include "fl/nn/nn.h"
#include "fl/optim/optim.h"
#include "fl/tensor/tensor.h"
