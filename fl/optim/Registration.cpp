// A pointer to FirstOrderOptimizer is written with its class, by the name that stands here.
#include "fl/nn/Serialization.h"
#include "fl/optim/optim.h"

CEREAL_REGISTER_TYPE(fl::AMSgradOptimizer)
CEREAL_REGISTER_TYPE(fl::AdadeltaOptimizer)
CEREAL_REGISTER_TYPE(fl::AdagradOptimizer)
CEREAL_REGISTER_TYPE(fl::AdamOptimizer)
CEREAL_REGISTER_TYPE(fl::AdamWOptimizer)
CEREAL_REGISTER_TYPE(fl::LionOptimizer)
CEREAL_REGISTER_TYPE(fl::NAGOptimizer)
CEREAL_REGISTER_TYPE(fl::NovogradOptimizer)
CEREAL_REGISTER_TYPE(fl::RMSPropOptimizer)
CEREAL_REGISTER_TYPE(fl::SGDOptimizer)
