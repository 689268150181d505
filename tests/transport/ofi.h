// The libfabric transport under test, over one of libfabric's providers.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "transport/conformance.h"
#include "transport/loaded.h"
#include "transport/rdm_cases.h"

namespace dtrain::test {

// left_out: cases that the provider cannot do, and why.
inline int run_over_ofi(const char *provider, std::map<std::string, const char *> left_out = {}) {
    subject.plugin = load("ofi");
    if (!subject.plugin) return 1;
    subject.options["ofi.provider"] = provider;
    subject.copies_messages = false;
    // These providers have no hardware that could be told: a write that has begun to arrive goes
    // on.
    subject.library_writes_late = true;
    left_out["descriptors_close_on_exec"] = "libfabric opens descriptors that do not close on exec";
    subject.left_out = std::move(left_out);
    return run_conformance(rdm_cases);
}

} // namespace dtrain::test
