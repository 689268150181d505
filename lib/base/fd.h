// File descriptors and files: the types that lib shares with the transports.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "common/fd.h"
#include "common/stream.h"

namespace dtrain {

using tp::Descriptors;
using tp::Fd;
using tp::Folder;
using tp::open_folder;
using tp::read_stream;
using tp::StandardDescriptors;
using tp::Stream;
using tp::Unshared;

} // namespace dtrain
