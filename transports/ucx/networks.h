// Which of UCX's transports are used.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

namespace dtrain::ucx {

struct Networks {
    std::string tls;             // in the form of UCX_TLS
    bool copying = false;        // none of them accesses processes' memory by itself
    bool shared_memory = false;  // one of them works through memory shared by processes of a host
    bool within_machine = false; // and there are no others
    bool only_tcp = false;
};

// The transports in a list in the form of UCX_TLS that this transport can use.
Networks usable(std::string_view list);

} // namespace dtrain::ucx
