// Images of shards, complete at once.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ps/storage/gradual_copy.h"

#include <memory>

namespace dtrain::ps {

template <class Image> std::unique_ptr<Image> complete(std::unique_ptr<Image> image) {
    while (image->copy->advance(1 << 20) == GradualCopy::State::going) {
    }
    return image;
}

} // namespace dtrain::ps
