// Everything for programs that change the compiler or a backend from outside of the tree: passes,
// fusion rules, cost models, packers, orders of steps, emitters, operators, and backends around
// others.
// docs/researching.md shows how.
#pragma once

#include "fl/codegen/Extensions.h"
#include "fl/codegen/cpu/Emitter.h"
#include "fl/custom/Conformance.h"
#include "fl/custom/Operator.h"
#include "fl/ir/Op.h"
#include "fl/ir/Rewrite.h"
#include "fl/planner/Extensions.h"
#include "fl/planner/Order.h"
#include "fl/runtime/Counters.h"
#include "fl/tensor/ForwardingBackend.h"
