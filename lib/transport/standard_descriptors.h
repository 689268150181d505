// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace dtrain::transport {

// While one lives, what others open does not become descriptor 0, 1 or 2: network libraries open
// some whenever they connect, and know nothing of programs that have closed these three and will
// put their log there. Any thread.
class StandardDescriptors {
  public:
    StandardDescriptors();
    ~StandardDescriptors();
    StandardDescriptors(const StandardDescriptors &) = delete;
    StandardDescriptors &operator=(const StandardDescriptors &) = delete;
};

} // namespace dtrain::transport
