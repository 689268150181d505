// TensorFlow's functions, looked up in the process that loads this library.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "tensorflow/abi.h"
#include <string>
#include <type_traits>

namespace dtrain::tensorflow {

struct Functions {
#define DTRAIN_X(member, name, type) std::add_pointer_t<type> member = nullptr;
    DTRAIN_TENSORFLOW_FUNCTIONS(DTRAIN_X)
#undef DTRAIN_X
};

// Those of this process; all members are set once find_functions() has returned an empty text.
extern Functions tf;

// Returns what is missing, or an empty text.
std::string find_functions();

} // namespace dtrain::tensorflow
