// The disk of a process.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace dtrain::simulator {

bool is_on_disk(int fd); // this process has created that file
void note_closed_file(int fd);
bool disk_refuses(); // with errno: it is full
void wait_for_disk(const char *call);

} // namespace dtrain::simulator
