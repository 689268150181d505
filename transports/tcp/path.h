// Whether anything can be between the two ends of a connection.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/hello.h"

namespace dtrain::tcp {

// What this connected socket's way looks like from here (hello.h); zero if it may leave the kernel,
// or the job has no secret. Somebody who passes data on, on this host too, has sockets of his own,
// and so ports of his own: the two ends then see different ways.
tp::Path path_of(const tp::Host &host, int fd, tp::Role role);

} // namespace dtrain::tcp
