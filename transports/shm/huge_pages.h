// Huge pages for shared memory, if the kernel has them at once, and the program lies on a disk.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/fd.h"

#include <cstddef>
#include <cstdint>

namespace dtrain::shm {

inline constexpr uint64_t huge_page_size = 2u << 20;

// data: an aligned mapping of the file. Whatever the kernel does not do is left to others.
void take_huge_pages(const tp::Fd &fd, std::byte *data, uint64_t size);

} // namespace dtrain::shm
