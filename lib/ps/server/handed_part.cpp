// Cuts the image of a server's part into pieces that clients can set.
// SPDX-License-Identifier: Apache-2.0
#include "ps/server/handed_part.h"

#include "ps/storage/row_image.h"
#include "ps/storage/shard_image.h"
#include "ps/table/narrow.h"
#include "ps/table/rules.h"

#include <algorithm>
#include <cstring>

namespace dtrain::ps {
namespace {

// Elements of a piece: whole items of every array.
uint64_t step_of(const TableParams &params) {
    const uint64_t whole = std::max<uint64_t>(whole_elements(params), 1);
    const uint64_t bytes = whole * item_of(params, RequestKind::set, 0).bytes;
    return whole * std::max<uint64_t>(handed_bytes / bytes, 1);
}

// A row as stored, in the table's dtype.
void widen(const TableParams &params, const char *stored, uint64_t count, char *to) {
    if (!is_stored_narrow(params)) {
        std::memcpy(to, stored, item_of(params, RequestKind::set_rows, 0).bytes);
        return;
    }
    std::vector<float> wide(count);
    read_row(wide.data(), storage_dtype_of(params), stored, count);
    write_row(to, params.dtype, wide.data(), count);
}

void add_values(const ShardImage &image, const Range &range, uint64_t place, HandedPart &out) {
    const TableParams &params = image.params;
    HandedPiece piece{.array = 0, .range = range, .keys = {}, .numbers = {}};
    piece.numbers.resize(range.count * item_of(params, RequestKind::set, 0).bytes);
    if (image.values.narrow()) {
        std::vector<float> wide(range.count);
        image.values.read({place, range.count}, wide.data());
        write_row(piece.numbers.data(), params.dtype, wide.data(), range.count);
    } else {
        std::memcpy(piece.numbers.data(), image.values.at(place), piece.numbers.size());
    }
    out.pieces.push_back(std::move(piece));
}

void add_state(const ShardImage &image, const Range &range, uint64_t place, HandedPart &out) {
    const std::vector<StateArray> arrays = state_arrays(image.params);
    for (size_t i = 0; i < arrays.size(); i++) {
        const StateArray &array = arrays[i];
        HandedPiece piece{.array = 1 + i, .range = range, .keys = {}, .numbers = {}};
        piece.range.count -= range.count % array.elements; // the end of a table without whole rows
        const uint64_t first = place / array.elements, items = range.count / array.elements;
        if (items == 0) continue;
        piece.numbers.resize(items * array.numbers * array.size);
        if (array.steps) {
            std::vector<uint64_t> counts(items);
            image.steps.read({first, items}, counts.data());
            std::memcpy(piece.numbers.data(), counts.data(), piece.numbers.size());
        } else {
            std::memcpy(piece.numbers.data(),
                        image.slots[i]->at(first * array.numbers * array.size),
                        piece.numbers.size());
        }
        out.pieces.push_back(std::move(piece));
    }
}

void add_shard(const ShardImage &image, HandedPart &out) {
    const uint64_t step = step_of(image.params);
    for (size_t r = 0; r < image.part.ranges(); r++) {
        const Range whole = image.part.range(r);
        for (uint64_t first = whole.first; first < whole.end(); first += step) {
            const Range range{first, std::min(step, whole.end() - first)};
            const uint64_t place = image.part.place_of(first);
            add_values(image, range, place, out);
            add_state(image, range, place, out);
        }
    }
}

void add_rows(const RowImage &image, HandedPart &out) {
    const TableParams &params = image.params;
    const std::vector<StateArray> arrays = state_arrays(params);
    const uint64_t row = item_of(params, RequestKind::set_rows, 0).bytes;
    const uint64_t most = std::max<uint64_t>(handed_bytes / row, 1);
    std::vector<uint64_t> keys;
    std::vector<const char *> rows;
    const auto add = [&](uint64_t array, uint64_t bytes, auto &&write) {
        HandedPiece piece{.array = array, .range = {0, keys.size()}, .keys = keys, .numbers = {}};
        piece.numbers.resize(keys.size() * bytes);
        for (size_t i = 0; i < rows.size(); i++) write(rows[i], &piece.numbers[i * bytes]);
        out.pieces.push_back(std::move(piece));
    };
    const auto flush = [&] {
        if (keys.empty()) return;
        add(0, row, [&](const char *from, char *to) { widen(params, from, params.dim, to); });
        for (size_t i = 0; i < arrays.size(); i++) {
            const uint64_t bytes = arrays[i].bytes_of(params.dim);
            add(1 + i, bytes, [&](const char *from, char *to) {
                if (!arrays[i].steps) {
                    std::memcpy(to, from + image.layout.slots[i].at, bytes);
                    return;
                }
                std::memset(to, 0, bytes); // the low half of a little-endian number
                std::memcpy(to, from + image.layout.steps_at, sizeof(uint32_t));
            });
        }
        keys.clear();
        rows.clear();
    };
    image.store.for_each([&](uint64_t key, const char *from) {
        keys.push_back(key);
        rows.push_back(from);
        if (keys.size() == most) flush();
    });
    flush();
}

} // namespace

RequestKind HandedPiece::kind(const TableParams &params) const {
    if (is_sparse(params)) return array == 0 ? RequestKind::set_rows : RequestKind::set_state_rows;
    return array == 0 ? RequestKind::set : RequestKind::set_state;
}

bool HandedPiece::fits(const TableParams &params) const {
    StateArray found;
    if (array > 0 && !find_state(params, state(), found)) return false;
    const Item item = item_of(params, kind(params), state());
    const bool sparse = is_sparse(params);
    if (sparse != !keys.empty() || (sparse && range != Range{0, keys.size()})) return false;
    if (!sparse && !Range{0, params.length}.contains(range)) return false;
    return item.bytes > 0 && range.count > 0 && range.count % item.elements == 0 &&
           numbers.size() == item.bytes_of(range.count);
}

std::optional<HandedPart> hand_over(const LegacyPart &part) {
    if (part.image == nullptr) return std::nullopt;
    HandedPart out{.params = part.params,
                   .server = part.server,
                   .updates = part.image->updates,
                   .rate = part.image->rate,
                   .pieces = {}};
    if (const ShardImage *shard = part.image->as_shard())
        add_shard(*shard, out);
    else if (const RowImage *rows = part.image->as_rows())
        add_rows(*rows, out);
    return out;
}

} // namespace dtrain::ps
