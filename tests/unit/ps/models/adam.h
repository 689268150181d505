// What the models of Adam and its variants share.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "unit/ps/rule_model.h"

#include <algorithm>
#include <cmath>
#include <vector>

// m^ / (sqrt(v^) + eps), where v^ comes from `second` after the update of the moments.
inline double adam_direction(ModelState &s, uint64_t e, double g,
                             const std::vector<double> &second) {
    const double t = s.counted(e);
    s.a[e] = s.p.beta1 * s.a[e] + (1 - s.p.beta1) * g;
    s.b[e] = s.p.beta2 * s.b[e] + (1 - s.p.beta2) * g * g;
    s.c[e] = std::max(s.c[e], s.b[e]);
    const double m = s.a[e] / (1 - std::pow(s.p.beta1, t));
    const double v = second[e] / (1 - std::pow(s.p.beta2, t));
    return m / (std::sqrt(v) + s.p.epsilon);
}
