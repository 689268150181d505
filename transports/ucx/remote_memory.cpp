// The wire over UCX: registered memory of this process and of peers.
// SPDX-License-Identifier: Apache-2.0
#include "ucx/ids.h"
#include "ucx/wire.h"

#include <endian.h>

namespace dtrain::ucx {
namespace {

// A key as it is sent. Its owner states the length, since UCX does not check it everywhere.
struct Rkey {
    uint64_t checksum; // over what follows: UCX may not survive bytes that it did not make
    uint64_t address, length;
    uint32_t packed_len, zero;
    uint8_t packed[rkey_len - 32];
};
static_assert(sizeof(Rkey) == rkey_len);

uint64_t checksum(const Rkey &rkey) { // FNV-1a
    const auto *bytes = reinterpret_cast<const uint8_t *>(&rkey);
    uint64_t sum = 0xCBF29CE484222325;
    for (size_t i = sizeof rkey.checksum; i < sizeof rkey; i++)
        sum = (sum ^ bytes[i]) * 0x100000001B3;
    return sum;
}

// Checks the key and whether it covers that range.
bool decode(const void *bytes, uint64_t address, uint64_t len, Rkey *rkey) {
    memcpy(rkey, bytes, sizeof *rkey);
    const uint64_t begin = le64toh(rkey->address), whole = le64toh(rkey->length);
    return le64toh(rkey->checksum) == checksum(*rkey) &&
           le32toh(rkey->packed_len) <= sizeof rkey->packed && address >= begin &&
           address - begin <= whole && len <= whole - (address - begin);
}

} // namespace

dtrain_status_t Wire::reg(const dtrain_mem_params_t &mem, dtrain_tp_mr_t **mr_p) {
    if (mem.mem_type != DTRAIN_MEM_HOST && mem.mem_type != DTRAIN_MEM_AUTO)
        return host_.fail(DTRAIN_ERR_UNSUPPORTED, "ucx: only host memory can be registered");
    std::unique_ptr<Registration> mr(new (std::nothrow) Registration);
    if (!mr) return failed("creating a registration", UCS_ERR_NO_MEMORY);
    ucp_mem_map_params_t params{};
    params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH |
                        UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE;
    params.address = mem.address;
    params.length = mem.length;
    params.memory_type = UCS_MEMORY_TYPE_HOST;
    const ucs_status_t status = ucp_mem_map(context_.get(), &params, &mr->handle);
    if (status != UCS_OK)
        return host_.fail(DTRAIN_ERR_NO_MEMORY,
                          "ucx: cannot register %llu bytes: %s; the limit of locked memory (ulimit "
                          "-l) may be too low",
                          static_cast<unsigned long long>(mem.length), ucs_status_string(status));
    mr->wire = this;
    mr->start = uint64_t(uintptr_t(mem.address));
    mr->length = mem.length;
    if (!registered_.add(mr.get())) {
        ucp_mem_unmap(context_.get(), mr->handle);
        return failed("creating a registration", UCS_ERR_NO_MEMORY);
    }
    *mr_p = mr.release();
    return DTRAIN_OK;
}

void Wire::dereg(dtrain_tp_mr_t *mr) {
    std::unique_ptr<Registration> gone(static_cast<Registration *>(mr));
    registered_.remove(gone.get());
    ucp_mem_unmap(context_.get(), gone->handle);
}

// Tells UCX of memory that is already registered, so that it need not register it for the
// operation.
void Wire::name_registration(const tp::IovCursor &memory, const void *piece, uint64_t len,
                             ucp_request_param_t &param) const {
    const auto *own = static_cast<const Registration *>(registered_.find(memory, piece, len));
    if (!own) return;
    param.op_attr_mask |= UCP_OP_ATTR_FIELD_MEMH;
    param.memh = own->handle;
}

dtrain_status_t Wire::rkey(dtrain_tp_mr_t *mr, void *buf, size_t len) {
    const auto &own = static_cast<const Registration &>(*mr);
    void *packed = nullptr;
    size_t packed_len = 0;
    const ucs_status_t status = ucp_rkey_pack(context_.get(), own.handle, &packed, &packed_len);
    if (status != UCS_OK) return failed("packing a key of registered memory", status);
    Rkey rkey{};
    const bool fits = packed_len <= sizeof rkey.packed && len >= sizeof rkey;
    if (fits) {
        rkey.address = htole64(own.start);
        rkey.length = htole64(own.length);
        rkey.packed_len = htole32(uint32_t(packed_len));
        memcpy(rkey.packed, packed, packed_len);
        rkey.checksum = htole64(checksum(rkey));
        memcpy(buf, &rkey, sizeof rkey);
    }
    ucp_rkey_buffer_release(packed);
    return fits ? DTRAIN_OK
                : host_.fail(DTRAIN_ERR_LIMIT,
                             "ucx: a key of %zu bytes is too long; choose fewer devices with "
                             "ucx.devices",
                             packed_len);
}

rdm::Sent Wire::put(rdm::Link *link, rdm::Operation *from, uint64_t remote_address,
                    const void *rkey) {
    return remote(Request::Kind::put, link, from, remote_address, rkey);
}

rdm::Sent Wire::get(rdm::Link *link, rdm::Operation *into, uint64_t remote_address,
                    const void *rkey) {
    return remote(Request::Kind::get, link, into, remote_address, rkey);
}

// A key that is not valid, or does not cover the range, ends the operation, not the connection.
rdm::Sent Wire::remote(Request::Kind kind, rdm::Link *to, rdm::Operation *operation,
                       uint64_t remote_address, const void *rkey) {
    auto *link = static_cast<Link *>(to);
    ucp_ep_h endpoint = link->way->endpoint;
    if (link->way->failed) return rdm::Sent::broken;
    Request *request = begin(kind, link->requests, operation);
    if (!request) return rdm::Sent::busy;
    Rkey key;
    request->status = UCS_ERR_INVALID_PARAM;
    if (decode(rkey, remote_address, operation->memory.remaining(), &key))
        request->status = ucp_ep_rkey_unpack(endpoint, key.packed, &request->rkey);
    const ucp_request_param_t shared = parameters(request);
    uint64_t len;
    while (uint8_t *piece = operation->memory.piece(&len)) {
        if (request->status != UCS_OK) break;
        ucp_request_param_t param = shared;
        name_registration(operation->memory, piece, len, param);
        started(request,
                kind == Request::Kind::put
                    ? ucp_put_nbx(endpoint, piece, len, remote_address, request->rkey, &param)
                    : ucp_get_nbx(endpoint, piece, len, remote_address, request->rkey, &param));
        operation->memory.advance(len);
        remote_address += len;
        traffic_.in_place += len;
    }
    // A put has arrived when everything before the flush has.
    if (kind == Request::Kind::put && request->status == UCS_OK)
        started(request, ucp_ep_flush_nbx(endpoint, &shared));
    finish_start(request);
    return rdm::Sent::later;
}

} // namespace dtrain::ucx
