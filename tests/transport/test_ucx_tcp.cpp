// The UCX transport over TCP.
// SPDX-License-Identifier: Apache-2.0
#include "conformance.h"
#include "ucx.h"

int main() { return dtrain::test::run_over_ucx("tcp"); }
