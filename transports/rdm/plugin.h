// The table of a transport that consists of a wire and the connections of this folder.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "rdm/device.h"

#include <memory>
#include <string>

namespace dtrain::rdm {

// Each such transport defines: its name, the devices for dtrain_tp_ops_t::list(), what two devices
// must have in common to be connected (at most 15 characters), and its wire (nullptr: no memory).
extern const char *const transport_name;
dtrain_status_t list_devices(const tp::Host &host, std::string *names);
std::string kind_of(const char *device);
std::unique_ptr<Wire> make_wire(const tp::Host &host, Protocol *protocol);

extern const dtrain_tp_ops_t ops;

} // namespace dtrain::rdm
