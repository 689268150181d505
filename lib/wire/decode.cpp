// Converts flatbuffers to control messages.
// SPDX-License-Identifier: Apache-2.0
//
// The verifier proves only that reading stays inside the buffer, so every field is checked here.
#include "wire/control.h"

#include "wire/control_generated.h"

#include <algorithm>

namespace dtrain::wire {
namespace {

Status bad(const char *what) { return fail(DTRAIN_ERR_CORRUPT, "control message: bad %s", what); }

// Keeps the first check that failed; reading then continues with empty values.
class Reader {
  public:
    // bytes: of the buffer. Nothing in it may be used twice: a table that a list has a thousand
    // times would make a small message a large one.
    explicit Reader(size_t bytes) : left_(bytes) {}
    const char *error = nullptr;

    void check(bool good, const char *what) {
        if (!good && error == nullptr) error = what;
    }
    std::string string(const flatbuffers::String *s, size_t most, const char *what) {
        check(s == nullptr || s->size() <= most, what);
        if (s != nullptr) spend(s->size());
        if (s == nullptr || error != nullptr) return {};
        std::string out(s->c_str(), s->size());
        // The text ends up in logs and terminals, so control characters are replaced.
        std::replace_if(
            out.begin(), out.end(), [](char c) { return c < 32 || c == 127; }, '?');
        return out;
    }
    // The verifier looks at the place of a list's length, not at those of its elements. That of an
    // empty list may be anywhere.
    template <class T> void aligned(const flatbuffers::Vector<T> *v, size_t unit) {
        const bool empty = v == nullptr || v->size() == 0;
        check(empty || reinterpret_cast<uintptr_t>(v->Data()) % unit == 0, "structure");
    }
    template <class T>
    std::vector<T> numbers(const flatbuffers::Vector<T> *v, size_t most, const char *what) {
        check(v == nullptr || v->size() <= most, what);
        aligned(v, alignof(T));
        if (v != nullptr) spend(v->size() * sizeof(T));
        if (v == nullptr || error != nullptr) return {};
        return {v->begin(), v->end()};
    }
    std::vector<int32_t> members(const flatbuffers::Vector<int32_t> *v) {
        std::vector<int32_t> all = numbers(v, max_members, "list of members");
        check(!all.empty(), "list of members");
        for (int32_t m : all) member(m);
        return all;
    }
    int32_t member(int32_t m) {
        check(m >= 0 && m < int32_t(max_members), "member");
        return m;
    }
    Status failure(Status s) {
        check(s < 0 && s >= DTRAIN_ERR_INTERNAL, "status");
        return s;
    }
    template <class T, class F>
    auto tables(const flatbuffers::Vector<flatbuffers::Offset<T>> *v, size_t most, const char *what,
                F unpack) {
        std::vector<decltype(unpack(*v->Get(0)))> out;
        check(v == nullptr || v->size() <= most, what);
        if (v == nullptr || error != nullptr) return out;
        for (const T *one : *v) {
            spend(least_table);
            if (error != nullptr) break;
            out.push_back(unpack(*one));
        }
        return out;
    }

  private:
    static constexpr size_t least_table = 2 * sizeof(uint32_t); // its place in the list, and itself

    void spend(size_t bytes) {
        check(bytes <= left_, "structure: the same part twice");
        left_ -= std::min(bytes, left_);
    }
    size_t left_;
};

Transport unpack(Reader &r, const fb::Transport &t) {
    Transport m{r.string(t.name(), max_transport_name, "transport name"),
                r.numbers(t.address(), max_transport_address, "transport address")};
    r.check(!m.name.empty(), "transport name");
    return m;
}

Peer unpack(Reader &r, const fb::Peer &t) {
    Peer m;
    r.check(t.role() <= 1, "role");
    m.role = t.role();
    m.index = r.member(t.index());
    m.pid = t.pid();
    m.host = r.string(t.host(), max_host, "host");
    m.listener = r.string(t.listener(), max_address, "listener");
    m.label = r.string(t.label(), max_text, "label");
    m.cpus = t.cpus();
    m.location = r.string(t.location(), max_text, "location");
    m.serves = t.serves();
    m.cores = t.cores();
    r.check(t.slot() < max_jobs, "slot of the job");
    m.slot = t.slot();
    m.verify = t.verify();
    m.transports = r.tables(t.transports(), max_transports, "list of transports",
                            [&](const fb::Transport &one) { return unpack(r, one); });
    return m;
}

Message unpack(Reader &r, const fb::Join &t) {
    Join m;
    m.version_min = t.version_min();
    m.version_max = t.version_max();
    m.workers = t.workers();
    m.servers = t.servers();
    r.check(m.workers >= 1 && m.servers >= 0 && m.workers <= int32_t(max_members) &&
                m.servers <= int32_t(max_members) - m.workers,
            "size of the job");
    r.check(t.self() != nullptr, "join without a self");
    if (t.self() != nullptr) m.self = unpack(r, *t.self());
    m.newcomer = t.newcomer();
    m.generation = t.generation();
    return m;
}
Message unpack(Reader &r, const fb::Waiting &t) {
    return Waiting{r.string(t.text(), max_text, "text")};
}
Message unpack(Reader &r, const fb::Roster &t) {
    Roster m{t.job(), t.epoch(), t.first(), t.total(), {}};
    r.check(m.total >= 1 && m.total <= max_members && m.first < m.total, "roster");
    m.members = r.tables(t.members(), max_members, "roster",
                         [&](const fb::Peer &one) { return unpack(r, one); });
    r.check(!m.members.empty() && m.members.size() <= m.total - std::min(m.first, m.total),
            "roster");
    return m;
}
Message unpack(Reader &, const fb::Heartbeat &t) { return Heartbeat{t.epoch()}; }
Message unpack(Reader &, const fb::Leave &t) { return Leave{t.moved()}; }
Message unpack(Reader &r, const fb::Over &t) {
    return Over{r.failure(t.status()), r.string(t.text(), max_text, "text")};
}
Gone unpack_gone(Reader &r, const fb::Gone &t) {
    return {
        t.epoch(), r.member(t.member()), t.left(), r.string(t.text(), max_text, "text"), t.silent(),
        t.moved(), r.failure(t.status())};
}
Message unpack(Reader &r, const fb::Gone &t) { return unpack_gone(r, t); }
Message unpack(Reader &r, const fb::GroupFailed &t) {
    GroupFailed m{t.group(),
                  r.members(t.members()),
                  r.failure(t.status()),
                  r.string(t.text(), max_text, "text"),
                  t.guilty(),
                  t.from()};
    r.check(m.guilty >= -1 && m.guilty < int32_t(max_members), "guilty member");
    return m;
}
Message unpack(Reader &r, const fb::Calls &t) {
    Calls m{t.group(), r.members(t.members()), t.stalled(), {}, t.stuck()};
    r.check(t.calls() == nullptr || t.calls()->size() <= max_calls, "list of calls");
    r.aligned(t.calls(), alignof(fb::Call));
    if (t.calls() == nullptr || r.error != nullptr) return m;
    for (const fb::Call *c : *t.calls()) {
        r.check(m.calls.empty() || m.calls.back().seq < c->seq(), "order of calls");
        m.calls.push_back(
            {c->seq(), c->count(), c->root(), CallKind(c->kind()), c->dtype(), c->op()});
    }
    return m;
}
Message unpack(Reader &, const fb::CallsWanted &t) { return CallsWanted{t.group()}; }
Message unpack(Reader &r, const fb::RankBehind &t) {
    return RankBehind{t.group(), r.member(t.rank()), t.seq()};
}
Message unpack(Reader &r, const fb::Relay &t) {
    return Relay{r.member(t.from()), r.member(t.to()), t.channel(),
                 r.numbers(t.bytes(), max_relay, "relayed message")};
}
TagSet unpack_tags(Reader &r, const flatbuffers::Vector<uint64_t> *v) {
    TagSet tags{};
    r.check(v != nullptr && v->size() == tags.size(), "set of tags");
    r.aligned(v, alignof(uint64_t));
    if (r.error == nullptr) std::copy(v->begin(), v->end(), tags.begin());
    return tags;
}
Message unpack(Reader &r, const fb::GroupRequest &t) {
    GroupRequest m{t.group(),
                   r.members(t.members()),
                   unpack_tags(r, t.used()),
                   t.timeout_ns(),
                   t.serial(),
                   GroupKind(t.kind()),
                   t.user_tag(),
                   t.held(),
                   t.round()};
    r.check(m.timeout_ns >= 0, "timeout");
    r.check(m.serial != 0, "serial number");
    r.check(m.kind <= GroupKind::last, "kind of group");
    r.check(m.held >= no_tag && m.held < int32_t(group_tags), "tag");
    return m;
}
GroupReply unpack_reply(Reader &r, const fb::GroupReply &t) {
    GroupReply m;
    m.group = t.group();
    m.status = t.status() == DTRAIN_OK ? DTRAIN_OK : r.failure(t.status());
    m.text = r.string(t.text(), max_text, "text");
    m.members = r.members(t.members());
    m.serials = r.numbers(t.serials(), max_members, "list of serial numbers");
    r.check(m.serials.size() == m.members.size(), "list of serial numbers");
    m.new_group = t.new_group();
    m.tag_id = t.tag_id();
    r.check(m.tag_id < group_tags, "tag");
    m.again = t.again();
    if (m.again) m.used = unpack_tags(r, t.used());
    m.round = t.round();
    return m;
}
Message unpack(Reader &r, const fb::GroupReply &t) { return unpack_reply(r, t); }

Message unpack(Reader &r, const fb::ReformRequest &t) {
    ReformRequest m{t.group(),
                    r.members(t.members()),
                    t.attempt(),
                    t.timeout_ns(),
                    r.string(t.place(), max_address, "place"),
                    t.smallest(),
                    t.largest(),
                    t.leaves()};
    r.check(m.timeout_ns >= 0, "timeout");
    r.check(m.smallest >= 1 && m.smallest <= int32_t(max_members) && m.largest >= 0 &&
                m.largest <= int32_t(max_members),
            "size of the job");
    return m;
}
std::vector<int32_t> moved_members(Reader &r, const flatbuffers::Vector<int32_t> *v) {
    std::vector<int32_t> all = r.numbers(v, max_members, "list of members");
    for (int32_t m : all)
        if (m != Moved::newcomer) r.member(m);
    return all;
}
std::vector<std::string>
remarks(Reader &r, const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>> *v) {
    std::vector<std::string> out;
    r.check(v == nullptr || v->size() <= max_remarks, "list of texts");
    if (v == nullptr || r.error != nullptr) return out;
    for (const flatbuffers::String *one : *v) out.push_back(r.string(one, max_text, "text"));
    return out;
}
Moved unpack_moved(Reader &r, const fb::Moved &t) {
    Moved m;
    m.group = t.group();
    m.attempt = t.attempt();
    m.status = t.status() == DTRAIN_OK ? DTRAIN_OK : r.failure(t.status());
    m.text = r.string(t.text(), max_text, "text");
    m.workers = moved_members(r, t.workers());
    m.servers = moved_members(r, t.servers());
    r.check(m.workers.size() + m.servers.size() <= max_members, "list of members");
    m.place = r.string(t.place(), max_address, "place");
    m.generation = t.generation();
    m.number = t.number();
    const size_t news = size_t(std::ranges::count(m.workers, Moved::newcomer) +
                               std::ranges::count(m.servers, Moved::newcomer));
    r.check(m.number >= -1 && m.number < int64_t(news), "number of a newcomer");
    m.came = remarks(r, t.came());
    m.went = remarks(r, t.went());
    return m;
}
Message unpack(Reader &r, const fb::Moved &t) { return unpack_moved(r, t); }
Message unpack(Reader &r, const fb::Newcomers &t) {
    r.check(t.count() <= max_newcomers, "number of newcomers");
    return Newcomers{t.count()};
}

template <class T> std::vector<Gone> unpack_all_gone(Reader &r, const T &t) {
    return r.tables(t.gone(), max_members, "list of members gone",
                    [&](const fb::Gone &one) { return unpack_gone(r, one); });
}
Message unpack(Reader &r, const fb::Rejoin &t) {
    return Rejoin{t.job(),
                  t.epoch(),
                  r.member(t.member()),
                  unpack_all_gone(r, t),
                  r.tables(t.replies(), max_replies, "list of replies",
                           [&](const fb::GroupReply &one) { return unpack_reply(r, one); }),
                  r.tables(t.moved(), max_moved, "list of reforms",
                           [&](const fb::Moved &one) { return unpack_moved(r, one); })};
}
Message unpack(Reader &r, const fb::Welcome &t) {
    return Welcome{t.epoch(), unpack_all_gone(r, t)};
}
Message unpack(Reader &, const fb::Deposed &t) { return Deposed{t.epoch()}; }

Message unpack_body(Reader &r, const fb::Control &control) {
    switch (control.body_type()) {
#define DTRAIN_BODY(type)                                                                          \
    case fb::Body::type: return unpack(r, *control.body_as_##type());
        DTRAIN_BODY(Join)
        DTRAIN_BODY(Waiting)
        DTRAIN_BODY(Roster)
        DTRAIN_BODY(Heartbeat)
        DTRAIN_BODY(Leave)
        DTRAIN_BODY(Over)
        DTRAIN_BODY(Gone)
        DTRAIN_BODY(GroupFailed)
        DTRAIN_BODY(Calls)
        DTRAIN_BODY(CallsWanted)
        DTRAIN_BODY(RankBehind)
        DTRAIN_BODY(Relay)
        DTRAIN_BODY(GroupRequest)
        DTRAIN_BODY(GroupReply)
        DTRAIN_BODY(Rejoin)
        DTRAIN_BODY(Welcome)
        DTRAIN_BODY(Deposed)
        DTRAIN_BODY(ReformRequest)
        DTRAIN_BODY(Moved)
        DTRAIN_BODY(Newcomers)
#undef DTRAIN_BODY
    case fb::Body::NONE: break;
    }
    r.check(false, "kind");
    return Leave{};
}

} // namespace

Status decode(std::span<const uint8_t> bytes, Message &message) {
    if (bytes.size() > max_frame) return bad("length");
    constexpr flatbuffers::uoffset_t depth = 8, tables = 2 * max_members;
    flatbuffers::Verifier verifier(bytes.data(), bytes.size(), depth, tables);
    if (!verifier.VerifyBuffer<fb::Control>(nullptr)) return bad("structure");
    const fb::Control &control = *flatbuffers::GetRoot<fb::Control>(bytes.data());
    // A verified union may have a type but no value.
    if (control.body() == nullptr) return bad("kind");
    Reader reader(bytes.size());
    Message fresh = unpack_body(reader, control);
    if (reader.error != nullptr) return bad(reader.error);
    message = std::move(fresh);
    return DTRAIN_OK;
}

} // namespace dtrain::wire
