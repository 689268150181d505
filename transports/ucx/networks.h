// Which of UCX's transports are used.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

namespace dtrain::ucx {

struct Networks {
    std::string tls;             // as UCX_TLS takes it
    bool copying = false;        // none of them reads and writes memory of processes by itself
    bool shared_memory = false;  // one of them is, between processes of one host
    bool within_machine = false; // and there are no others
    bool only_tcp = false;
};

// Of a list as UCX_TLS takes it, what this transport can use.
Networks usable(std::string_view list);

} // namespace dtrain::ucx
