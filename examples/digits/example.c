/* SPDX-License-Identifier: Apache-2.0
 *
 * The messages (tensorflow/core/example/{example,feature}.proto), as far as they matter here:
 *   Example   { Features features = 1; }
 *   Features  { map<string, Feature> feature = 1; }       an entry: { string key = 1; Feature value
 * = 2; } Feature   { BytesList bytes_list = 1; FloatList float_list = 2; Int64List int64_list = 3;
 * } BytesList { repeated bytes value = 1; }               Int64List { repeated int64 value = 1; }
 * and their encoding: protobuf.dev/programming-guides/encoding. */
#include "example.h"

#include <stdbool.h>
#include <string.h>

typedef struct span {
    const uint8_t *at, *end;
} span_t;

enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 }; /* wire types */

typedef struct field {
    uint64_t number;
    uint64_t type;
    uint64_t value; /* VARINT */
    span_t bytes;   /* the others */
} field_t;

static bool read_varint(span_t *in, uint64_t *value) {
    *value = 0;
    for (int shift = 0; shift < 64 && in->at < in->end; shift += 7) {
        uint8_t byte = *in->at++;
        *value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) return true;
    }
    return false;
}

static bool read_field(span_t *in, field_t *field) {
    uint64_t key, length;
    if (!read_varint(in, &key)) return false;
    field->number = key >> 3;
    field->type = key & 7;
    if (field->type == VARINT) return read_varint(in, &field->value);
    if (field->type == FIXED64)
        length = 8;
    else if (field->type == FIXED32)
        length = 4;
    else if (field->type != BYTES || !read_varint(in, &length))
        return false;
    if (length > (uint64_t)(in->end - in->at)) return false;
    field->bytes = (span_t){in->at, in->at + length};
    in->at += length;
    return true;
}

/* The last field of that number and BYTES type; false when there is none or `in` is malformed. */
static bool find_bytes(span_t in, uint64_t number, span_t *found) {
    bool any = false;
    field_t field;
    while (in.at < in.end) {
        if (!read_field(&in, &field)) return false;
        if (field.number != number || field.type != BYTES) continue;
        *found = field.bytes;
        any = true;
    }
    return any;
}

static bool equal(span_t text, const char *expected) {
    size_t length = (size_t)(text.end - text.at);
    return length == strlen(expected) && memcmp(text.at, expected, length) == 0;
}

static const char *read_image(span_t feature, sample_t *sample) {
    span_t list = {NULL, NULL}, image = {NULL, NULL};
    if (!find_bytes(feature, 1, &list) || !find_bytes(list, 1, &image))
        return "\"image\" is no list of bytes";
    if (image.end - image.at != PIXELS) return "\"image\" is not 64 bytes long";
    for (int i = 0; i < PIXELS; i++) {
        if (image.at[i] > PIXEL_MAX) return "a pixel of \"image\" is above 16";
        sample->image[i] = (float)image.at[i] / PIXEL_MAX;
    }
    return NULL;
}

static const char *read_label(span_t feature, sample_t *sample) {
    span_t list = {NULL, NULL};
    field_t value;
    uint64_t label;
    if (!find_bytes(feature, 3, &list) || !read_field(&list, &value) || value.number != 1)
        return "\"label\" is no list of integers";
    label = value.value;
    if (value.type == BYTES && !read_varint(&value.bytes, &label)) return "\"label\" is empty";
    if ((value.type != VARINT && value.type != BYTES) || label >= CLASSES)
        return "\"label\" is not 0..9";
    sample->label = (int32_t)label;
    return NULL;
}

const char *example_decode(const uint8_t *data, size_t length, sample_t *sample) {
    const char *image = "\"image\" is missing", *label = "\"label\" is missing";
    span_t features = {NULL, NULL}, name = {NULL, NULL}, feature = {NULL, NULL};
    field_t entry;
    if (!find_bytes((span_t){data, data + length}, 1, &features)) return "no tf.train.Example";
    while (features.at < features.end) {
        if (!read_field(&features, &entry)) return "malformed tf.train.Example";
        if (entry.number != 1 || entry.type != BYTES) continue;
        if (!find_bytes(entry.bytes, 1, &name) || !find_bytes(entry.bytes, 2, &feature))
            return "malformed feature";
        if (equal(name, "image")) image = read_image(feature, sample);
        if (equal(name, "label")) label = read_label(feature, sample);
    }
    return image != NULL ? image : label;
}
