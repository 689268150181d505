// The UCX transport under test, over some of the networks that UCX knows.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "conformance.h"
#include "loaded.h"
#include "ucx_cases.h"

namespace dtrain::test {

// left_out: cases that the networks cannot do, and why.
inline int run_over_ucx(const char *networks, std::map<std::string, const char *> left_out = {}) {
    subject.plugin = load("ucx");
    if (!subject.plugin) return 1;
    subject.options["ucx.tls"] = networks;
    left_out["descriptors_close_on_exec"] = "UCX opens descriptors that do not";
    subject.left_out = std::move(left_out);
    return run_conformance(ucx_cases);
}

} // namespace dtrain::test
