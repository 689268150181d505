// Chooses the candidates for a group's tag id.
// SPDX-License-Identifier: Apache-2.0
#include "cluster/control/group_attempt.h"

#include "base/hash.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace dtrain::cluster {

const char *group_call(wire::GroupKind kind) {
    static constexpr const char *names[] = {"shrink", "create_group"};
    static_assert(std::size(names) == size_t(wire::GroupKind::last) + 1);
    return names[size_t(kind)];
}

uint32_t answered_serial(const wire::GroupReply &reply, int32_t member) {
    auto at = std::find(reply.members.begin(), reply.members.end(), member);
    return at == reply.members.end() ? 0 : reply.serials[size_t(at - reply.members.begin())];
}

GroupAttempt::GroupAttempt(TagIds &tags, wire::GroupRequest request)
    : tags_(tags), request_(std::move(request)) {
    hold({});
}

void GroupAttempt::again(const wire::GroupReply &reply) {
    let_go();
    request_.round = reply.round;
    hold(reply.used);
}

bool GroupAttempt::fits(const wire::GroupReply &reply) const {
    auto place = request_.members.begin(); // the members keep the order of the list
    for (int32_t m : reply.members) {
        place = std::find(place, request_.members.end(), m);
        if (place == request_.members.end()) return false;
        ++place;
    }
    return int32_t(reply.tag_id) == request_.held;
}

void GroupAttempt::let_go() {
    if (request_.held != no_tag) tags_.free(uint32_t(std::exchange(request_.held, no_tag)));
}

void GroupAttempt::hold(const TagSet &except) {
    uint64_t hash = mix(request_.group + mix(uint64_t(request_.kind) << 32 | request_.round));
    hash = mix(hash + uint32_t(request_.user_tag));
    for (int32_t m : request_.members) hash = mix(hash + uint64_t(m));
    request_.used = tags_.used();
    request_.held = tags_.take_from(uint32_t(hash % group_tags), except);
}

} // namespace dtrain::cluster
