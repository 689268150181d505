// Fills and sends packs, and reuses their memory.
// SPDX-License-Identifier: Apache-2.0
#include "ps/node/pack_sender.h"

#include <iterator>

namespace dtrain::ps {

Status PackSender::make_room(uint32_t member, uint64_t bytes) {
    if (member >= open_.size()) open_.resize(member + 1);
    if (open_[member] != nullptr && !open_[member]->pack.has_room_for(bytes) && !send(member))
        return DTRAIN_ERR_BUSY;
    if (open_[member] != nullptr) return DTRAIN_OK;
    if (spare_.empty()) add_spare();
    parcels_.splice(parcels_.end(), spare_, spare_.begin());
    Parcel &parcel = parcels_.back();
    parcel.place = std::prev(parcels_.end());
    parcel.member = member;
    parcel.pack.clear();
    if (peers_ != nullptr) parcel.charge = Charge(peers_[member], most_pack_bytes);
    open_[member] = &parcel;
    filled_++;
    return DTRAIN_OK;
}

void PackSender::add_spare() {
    Parcel &parcel = spare_.emplace_back();
    parcel.done = &sent;
    parcel.sender = this;
    parcel.registration =
        memory::Registration::make_own(agent_.devices(), parcel.pack.data(), most_pack_bytes);
}

bool PackSender::send(uint32_t member) {
    Parcel &parcel = *open_[member];
    dtrain_tp_iov_t iov = {.addr = parcel.pack.data(), .len = parcel.pack.size(), .mr = nullptr};
    Status s = mesh_.send(member, tag_, &iov, 1, &parcel);
    if (s == DTRAIN_ERR_BUSY) return false;
    close_open(member);
    if (s == DTRAIN_OK)
        pending_++;
    else
        forget(parcel); // the member is lost, or will repeat its requests
    return true;
}

int PackSender::flush_all() {
    int left = 0;
    for (uint32_t m = 0; filled_ > 0 && m < open_.size(); m++)
        if (open_[m] != nullptr) left += send(m);
    return left;
}

void PackSender::flush(uint32_t member) {
    if (member < open_.size() && open_[member] != nullptr) (void)send(member);
}

void PackSender::discard_open(uint32_t member) {
    if (member >= open_.size() || open_[member] == nullptr) return;
    Parcel &parcel = *open_[member];
    close_open(member);
    forget(parcel);
}

void PackSender::drop(uint32_t member) {
    discard_open(member);
    for (Parcel &parcel : parcels_)
        if (parcel.member == member) mesh_.withdraw(member, &parcel);
}

void PackSender::close() {
    for (uint32_t m = 0; m < open_.size(); m++) discard_open(m);
    for (Parcel &parcel : parcels_) mesh_.withdraw(parcel.member, &parcel);
}

void PackSender::close_open(uint32_t member) {
    added_ -= open_[member]->added;
    open_[member]->added = 0;
    open_[member] = nullptr;
    filled_--;
}

void PackSender::forget(Parcel &parcel) {
    parcel.charge = {};
    spare_.splice(spare_.end(), parcels_, parcel.place);
}

void PackSender::sent(engine::Completion *self, const dtrain_tp_done_t &) {
    Parcel &parcel = *static_cast<Parcel *>(self);
    parcel.sender->pending_--;
    parcel.sender->forget(parcel);
}

} // namespace dtrain::ps
