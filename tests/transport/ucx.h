// The UCX transport under test, over some of the networks that UCX knows.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "conformance.h"
#include "loaded.h"
#include "ucx_cases.h"

namespace dtrain::test {

inline int run_over_ucx(const char *networks) {
    subject.plugin = load("ucx");
    if (!subject.plugin) return 1;
    subject.options["ucx.tls"] = networks;
    subject.left_out["descriptors_close_on_exec"] = "UCX opens descriptors that do not";
    return run_conformance(ucx_cases);
}

} // namespace dtrain::test
