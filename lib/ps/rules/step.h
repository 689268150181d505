// The numbers of one update, and the norms of a row, for processors and accelerators alike.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <stdint.h>

namespace dtrain::ps {

// They are the same for all elements of an update.
struct Step {
    double rate = 0, momentum = 0, beta1 = 0, beta2 = 0, rho = 0, epsilon = 0;
    double decay = 0, own_decay = 0; // weight decay: added to g; applied by the rule
    double l1 = 0, l2 = 0, clip = 0;
    double ftrl_beta = 0, compensation = 0, trust = 0;
    double first = 1, second = 1; // corrections of Adam's moments: 1 / (1 - beta^t)
    double share = 1;             // MEAN: 1 / t
    double scale = 1;             // factor for g that clips its norm
    double ratio = 1;             // factor for the rate, computed from norms
};

// Squared norms over a row: of the values, and of the direction of the update (g, or what the rule
// makes of it).
struct Norms {
    double values = 0, direction = 0;
};

} // namespace dtrain::ps
