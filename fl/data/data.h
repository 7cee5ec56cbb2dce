// All of fl/data.
#pragma once

#include "fl/data/BatchDataset.h"
#include "fl/data/Dataset.h"
#include "fl/data/ResampleDataset.h"
#include "fl/data/ShuffleDataset.h"
#include "fl/data/SpanDataset.h"
#include "fl/data/TensorDataset.h"
#include "fl/data/TransformDataset.h"
#include "fl/data/Utils.h"
