// The wire over libfabric: how it opens, sleeps and closes.
// SPDX-License-Identifier: Apache-2.0
#include "ofi/wire.h"
#include "common/number.h"
#include "ofi/locked_memory.h"

#include <algorithm>
#include <cstring>
#include <poll.h>
#include <rdma/fi_errno.h>
#include <string>

namespace dtrain::ofi {
namespace {

constexpr size_t packet_count = 256, packet_size = (16 << 10) + 64;
constexpr size_t locked_packet_size = 8 << 10; // if all of them are locked, used or not
constexpr size_t buffer_count = 4, buffer_size = 256 << 10; // of those that libfabric has
constexpr size_t most_buffers = 64;                         // while packets are arriving in others
constexpr uint64_t chunk_limit = 1 << 20; // small messages wait for only a few of these
constexpr int most_unread = 100'000;

// Properties of the providers. A packet must be of a size that the provider delivers in order: data
// that it moves by its own rendezvous complete late, and over shared memory only once received.
struct Model {
    const char *provider;
    uint32_t packet_limit, eager_limit;
    uint64_t latency_ns, bandwidth_bps; // measured within a host if they are emulated
};
constexpr Model models[] = {
    {"net", (128 << 10) + 64, 128 << 10, 6'000, 5'000'000'000},
    {"sockets", 64 << 10, 64 << 10, 5'000'000, 500'000'000},
    {"shm", 4096, 16 << 10, 600, 5'000'000'000},
    {"tcp;ofi_rxm", 16 << 10, 32 << 10, 8'000, 5'000'000'000},
    {"udp;ofi_rxd", 16 << 10, 16 << 10, 12'000, 250'000'000},
    {"", locked_packet_size, locked_packet_size, 2'000, 10'000'000'000}, // all other providers
};
const Model &model_of(const std::string &provider) {
    const Model *model = models;
    while (*model->provider && provider != model->provider) model++;
    return *model;
}

} // namespace

Wire::~Wire() {
    // Over verbs, libfabric crashes if received data was not read before the end.
    fi_cq_data_entry unread;
    for (int i = 0; fabric_.rx && i < most_unread; i++)
        if (fi_cq_read(fabric_.rx.get(), &unread, 1) != 1) break;
    fabric_.endpoint.reset(); // releases the memory that it holds
    while (Chunk *chunk = chunks_.front()) take_back(chunk);
    while (ofi::Link *link = given_up_.pop_front()) delete link;
    while (Answer *answer = answers_.pop_front()) answer_pool_.put(answer);
}

dtrain_status_t Wire::open(const char *device) {
    const std::string name = device;
    const size_t slash = name.find('/');
    dtrain_status_t status =
        fabric_.open(host_, name.substr(0, slash),
                     slash == std::string::npos ? std::string() : name.substr(slash + 1));
    if (status != DTRAIN_OK) return status;
    const fi_info &info = *fabric_.info;
    const std::string provider = info.fabric_attr->prov_name;
    const bool shm = provider == "shm";
    counts_bytes_ = provider == "net" || provider == "tcp";
    local_ = fabric_.needs(FI_MR_LOCAL);
    inject_limit_ = info.tx_attr->inject_size;
    chunk_limit_ = std::min<uint64_t>(chunk_limit, info.ep_attr->max_msg_size);
    attr_.within_machine = shm || !strcmp(info.domain_attr->name, "lo");
    attr_.by_processors = is_emulated(provider.c_str());
    attr_.closes_quietly = provider != "verbs;ofi_rxm";
    attr_.caps = DTRAIN_TP_CAP_PUT | DTRAIN_TP_CAP_GET;
    attr_.bulk_limit = uint64_t{1} << 40;
    const Model &model = model_of(provider);
    attr_.packet_limit = local_ ? uint32_t(locked_packet_size) : model.packet_limit;
    packet_size_ = std::min<size_t>(attr_.packet_limit, packet_size);
    attr_.copy_limit = attr_.head_limit = uint32_t(packet_size_);
    attr_.eager_limit = model.eager_limit;
    attr_.rkey_len = rkey_length;
    attr_.latency_ns = model.latency_ns;
    attr_.bandwidth_bps = model.bandwidth_bps;
    uint64_t cache_mib = 0;
    status = tp::read_number(host_, "ofi.cache", 1'000'000, cache_mib);
    if (status != DTRAIN_OK) return status;
    if (local_) cache_.open(cache_mib << 20);
    return open_buffers();
}

dtrain_status_t Wire::open_buffers() {
    packet_bytes_.reset(new (std::nothrow) uint8_t[packet_count * packet_size_]);
    if (!packet_bytes_) return host_.fail(DTRAIN_ERR_NO_MEMORY, "ofi: no memory for packets");
    int error = 0;
    if (local_)
        packet_registration_ = Registration::make(secrets_, fabric_, packet_bytes_.get(),
                                                  packet_count * packet_size_, &error);
    packets_.resize(packet_count);
    for (size_t i = 0; i < packet_count && !error; i++) {
        packets_[i].bytes = packet_bytes_.get() + i * packet_size_;
        if (local_) packets_[i].descriptor = packet_registration_->descriptor();
        free_packets_.push_back(&packets_[i]);
    }
    size_t least = attr_.packet_limit;
    if (!error)
        error = fi_setopt(&fabric_.endpoint->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least,
                          sizeof least);
    buffers_.reserve(most_buffers);
    spare_buffers_.reserve(most_buffers);
    for (size_t i = 0; i < buffer_count && !error; i++) make_buffer(&error);
    if (!error && !post_buffers()) error = -FI_EIO;
    if (local_) check_lock_limit(host_, packet_count * packet_size_ + buffer_count * buffer_size);
    if (!error) return DTRAIN_OK;
    const bool locked = error == -FI_ENOMEM || error == -FI_EPERM;
    return host_.fail(DTRAIN_ERR_TRANSPORT, "ofi: cannot register memory for packets: %s%s%s",
                      fi_strerror(-error), locked ? "; " : "", locked ? raise_lock_limit : "");
}

bool Wire::make_buffer(int *error) {
    std::unique_ptr<Buffer> buffer(new (std::nothrow) Buffer);
    if (buffer) buffer->bytes.reset(new (std::nothrow) uint8_t[buffer_size]);
    if (!buffer || !buffer->bytes) *error = -FI_ENOMEM;
    if (!*error && local_)
        buffer->registration =
            Registration::make(secrets_, fabric_, buffer->bytes.get(), buffer_size, error);
    if (*error) return false;
    buffer->kind = Context::Kind::buffer;
    spare_buffers_.push_back(buffer.get());
    buffers_.push_back(std::move(buffer));
    return true;
}

// False: libfabric has none, and gets none.
bool Wire::post_buffers() {
    int error = 0;
    while (posted_ < buffer_count) {
        const bool full = buffers_.size() >= most_buffers; // until packets have arrived
        if (spare_buffers_.empty() && (full || !make_buffer(&error))) return full || posted_;
        if (!post(spare_buffers_.back())) return false;
        spare_buffers_.pop_back();
    }
    return true;
}

bool Wire::post(Buffer *buffer) {
    buffer->arrived = buffer->all = 0;
    buffer->used_up = false;
    iovec piece{buffer->bytes.get(), buffer_size};
    void *descriptor = buffer->registration ? buffer->registration->descriptor() : nullptr;
    fi_msg message{};
    message.msg_iov = &piece;
    message.desc = &descriptor;
    message.iov_count = 1;
    message.addr = FI_ADDR_UNSPEC;
    message.context = &buffer->libfabric;
    if (fi_recvmsg(fabric_.endpoint.get(), &message, FI_MULTI_RECV)) return false;
    posted_++;
    return true;
}

bool Wire::arm() {
    if (!answers_.empty() || !waiting_.empty() || failed_ || broken_links_) return false;
    pollfd events{fabric_.events.get(), POLLIN, 0};
    if (fabric_.can_wait() && ::poll(&events, 1, 0) == 0) return true;
    idle_ = 0; // makes the next progress() check both queues
    return false;
}

bool Wire::quiet() {
    ends_ = true;
    return !unsent_ && answers_.empty() && waiting_.empty();
}

} // namespace dtrain::ofi
