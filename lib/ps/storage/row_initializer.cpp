// Draws the initial values of a row.
// SPDX-License-Identifier: Apache-2.0
#include "ps/storage/row_initializer.h"

#include "base/elementary.h"
#include "base/hash.h"
#include "ps/optimizer/update_rule.h"
#include "ps/table/dtype.h"

#include <cmath>

namespace dtrain::ps {
namespace {

// A number in [0, 1), a multiple of 2^-53.
double unit(uint64_t random) { return double(random >> 11) * 0x1p-53; }

} // namespace

// Column c uses the numbers 2c and 2c + 1 of the row's random sequence.
void RowInitializer::fill(uint64_t key, void *values) const {
    if (distribution == Distribution::constant) return ps::fill(dtype, values, dim, a);
    const uint64_t row = mix(seed ^ mix(key));
    visit_dtype(dtype, [&]<class T>() {
        for (uint32_t c = 0; c < dim; c++) {
            const double u = unit(mix(row + 2 * uint64_t(c)));
            double value = a + (b - a) * u;
            if (distribution == Distribution::normal) { // Box, Muller 1958
                const double v = unit(mix(row + 2 * uint64_t(c) + 1));
                value = a + b * std::sqrt(-2 * logarithm(1 - u)) * cosine_of_turn(v);
            }
            static_cast<T *>(values)[c] = converted<T>(value);
        }
    });
}

} // namespace dtrain::ps
