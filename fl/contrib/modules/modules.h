// All modules of this folder.
#pragma once

#include "fl/contrib/modules/AdaptiveEmbedding.h"
#include "fl/contrib/modules/AsymmetricConv1D.h"
#include "fl/contrib/modules/Conformer.h"
#include "fl/contrib/modules/PositionEmbedding.h"
#include "fl/contrib/modules/RawWavSpecAugment.h"
#include "fl/contrib/modules/Residual.h"
#include "fl/contrib/modules/SinusoidalPositionEmbedding.h"
#include "fl/contrib/modules/SpecAugment.h"
#include "fl/contrib/modules/TDSBlock.h"
#include "fl/contrib/modules/Transformer.h"
