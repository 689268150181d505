// What Adam and its variants share: two moments, a (first) and b (second). Only for their loops.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/rules/loops/loop.h"

namespace dtrain::ps {
namespace {

// The constants that all variants use.
template <class T> struct Adam {
    DTRAIN_MEMBER explicit Adam(const Step &s)
        : beta1(static_cast<T>(s.beta1)), beta2(static_cast<T>(s.beta2)),
          rest1(static_cast<T>(1 - s.beta1)), rest2(static_cast<T>(1 - s.beta2)),
          rate(static_cast<T>(s.rate * s.first)), first(static_cast<T>(s.first)),
          second(static_cast<T>(s.second)), epsilon(static_cast<T>(s.epsilon)) {}
    T beta1, beta2, rest1, rest2, rate, first, second, epsilon;
};

} // namespace
} // namespace dtrain::ps
