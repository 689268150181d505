// Code that the files of dense and of sparse parts of a checkpoint share.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/crc32c.h"
#include "data/durable_file.h"
#include "ps/checkpoint/part_heading.h"

#include <algorithm>
#include <string>

namespace dtrain::ps {

constexpr uint64_t piece_bytes = 256 << 10; // of a file's data, at a time

// Writes an image to a file. pieces(f) calls f(data, bytes) for all data in the order of the
// tensors, until a call fails; it is called twice. index_of(heading) returns the file's index.
template <class Image, class Pieces, class IndexOf>
Status write_part(data::Disk &disk, const std::string &path, const CheckpointName &checkpoint,
                  const Image &image, Pieces &&pieces, IndexOf &&index_of) {
    PartHeading heading = {.checkpoint = checkpoint,
                           .updates = image.updates,
                           .clock = image.clock,
                           .rate = image.rate,
                           .crc = 0};
    pieces([&](const void *data, uint64_t bytes) {
        heading.crc = crc32c(data, bytes, heading.crc);
        return DTRAIN_OK;
    });
    data::DurableFile file(disk);
    if (Status s = file.open(path); s != DTRAIN_OK) return s;
    const std::string head = data::index_text(index_of(heading));
    if (Status s = file.write(head.data(), head.size()); s != DTRAIN_OK) return s;
    auto write = [&](const void *data, uint64_t bytes) { return file.write(data, bytes); };
    if (Status s = pieces(write); s != DTRAIN_OK) return s;
    return file.commit();
}

// Call it after all data have been read. crc: their checksum.
template <class Image> Status take_over(const PartHeading &heading, uint32_t crc, Image &image) {
    if (crc != heading.crc)
        return fail(DTRAIN_ERR_CORRUPT, "its data is damaged: checksum %08x, not %08x", crc,
                    heading.crc);
    image.updates = std::min(image.updates, heading.updates);
    image.clock = heading.clock;
    image.rate = heading.rate;
    return DTRAIN_OK;
}

} // namespace dtrain::ps
