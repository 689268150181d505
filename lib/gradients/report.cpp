// Encodes and decodes reports.
// SPDX-License-Identifier: Apache-2.0
//
// A report consists of a Head, the two bit vectors, then for each announcement an Item and its
// name. Like the tensors, it has the byte order of the machine, which all ranks share.
#include "gradients/report.h"

#include <cstring>

namespace dtrain::gradients {
namespace {

struct Head {
    uint32_t flags, words, fresh, reserved;
};
struct Item {
    uint64_t count;
    int32_t priority;
    uint8_t dtype, op, expired, name;
};
static_assert(sizeof(Head) == 16 && sizeof(Item) == 16);
static_assert(max_name <= UINT8_MAX);

constexpr uint32_t flag_joins = 1, flag_closes = 2;

void append(std::vector<uint8_t> &out, const void *data, size_t bytes) {
    const auto *from = static_cast<const uint8_t *>(data);
    out.insert(out.end(), from, from + bytes);
}

class Reader {
  public:
    explicit Reader(std::span<const uint8_t> bytes) : rest_(bytes) {}
    bool read(void *to, size_t bytes) {
        if (rest_.size() < bytes) return false;
        if (bytes > 0) std::memcpy(to, rest_.data(), bytes);
        rest_ = rest_.subspan(bytes);
        return true;
    }
    size_t left() const { return rest_.size(); }

  private:
    std::span<const uint8_t> rest_;
};

Status corrupt(const char *what) {
    return fail(DTRAIN_ERR_CORRUPT, "gradients: bad report: %s", what);
}

Status read_item(Reader &reader, Announcement &out) {
    Item item;
    if (!reader.read(&item, sizeof item)) return corrupt("an announcement cut short");
    out.name.resize(item.name);
    if (!reader.read(out.name.data(), item.name)) return corrupt("a name cut short");
    if (Status s = check_tensor(out.name, item.count, item.dtype, item.op); s != DTRAIN_OK)
        return fail_within(DTRAIN_ERR_CORRUPT, "a report");
    out.spec = {.count = item.count, .dtype = item.dtype, .op = item.op};
    out.priority = item.priority;
    out.expired = item.expired != 0;
    return DTRAIN_OK;
}

} // namespace

size_t report_bytes(size_t words) { return sizeof(Head) + 2 * words * sizeof(uint64_t); }

size_t announcement_bytes(const Announcement &announcement) {
    return sizeof(Item) + announcement.name.size();
}

std::vector<uint8_t> encode(const Report &report) {
    std::vector<uint8_t> out;
    Head head = {.flags = (report.joins ? flag_joins : 0u) | (report.closes ? flag_closes : 0u),
                 .words = uint32_t(report.waiting.size()),
                 .fresh = uint32_t(report.fresh.size()),
                 .reserved = 0};
    append(out, &head, sizeof head);
    append(out, report.waiting.data(), report.waiting.size() * sizeof(uint64_t));
    append(out, report.expired.data(), report.expired.size() * sizeof(uint64_t));
    for (const Announcement &a : report.fresh) {
        Item item = {.count = a.spec.count,
                     .priority = a.priority,
                     .dtype = a.spec.dtype,
                     .op = a.spec.op,
                     .expired = a.expired,
                     .name = uint8_t(a.name.size())};
        append(out, &item, sizeof item);
        append(out, a.name.data(), a.name.size());
    }
    return out;
}

Status decode(std::span<const uint8_t> bytes, size_t words, Report &out) {
    Reader reader(bytes);
    Head head;
    if (!reader.read(&head, sizeof head)) return corrupt("no head");
    if ((head.flags & ~(flag_joins | flag_closes)) != 0) return corrupt("unknown flags");
    if (head.words != words) return corrupt("a bit vector of another length");
    out.joins = (head.flags & flag_joins) != 0;
    out.closes = (head.flags & flag_closes) != 0;
    out.waiting.resize(words);
    out.expired.resize(words);
    if (!reader.read(out.waiting.data(), words * sizeof(uint64_t)) ||
        !reader.read(out.expired.data(), words * sizeof(uint64_t)))
        return corrupt("a bit vector cut short");
    if (head.fresh > reader.left() / sizeof(Item)) return corrupt("announcements cut short");
    out.fresh.resize(head.fresh);
    for (Announcement &a : out.fresh)
        if (Status s = read_item(reader, a); s != DTRAIN_OK) return s;
    return reader.left() == 0 ? DTRAIN_OK : corrupt("trailing bytes");
}

} // namespace dtrain::gradients
