/* Conversion of the pattern numbers to and from all dtypes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "pattern.h"

#include "dtrain.h"

#include <math.h>
#include <string.h>

static uint16_t half_from_int(int value) {
    int exponent = 0;
    if (value == 0) return 0;
    while (value >> (exponent + 1) != 0) exponent++;
    return (uint16_t)((exponent + 15) << 10 | (value - (1 << exponent)) << (10 - exponent));
}

static double half_to_double(uint16_t half) {
    const int exponent = half >> 10 & 31, mantissa = half & 1023;
    if (exponent == 31) return NAN; /* the pattern has none: never the expected value */
    const double size =
        exponent == 0 ? ldexp(mantissa, -24) : ldexp(1024 + mantissa, exponent - 25);
    return half & 0x8000 ? -size : size;
}

static float bfloat_to_float(uint16_t bits) {
    const uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

static uint16_t bfloat_from_float(float value) {
    uint32_t wide;
    memcpy(&wide, &value, sizeof wide);
    return (uint16_t)(wide >> 16);
}

void pattern_write(void *element, uint32_t dtype, int value) {
    switch (dtype) {
    case DTRAIN_F32: *(float *)element = (float)value; break;
    case DTRAIN_F64: *(double *)element = value; break;
    case DTRAIN_F16: *(uint16_t *)element = half_from_int(value); break;
    case DTRAIN_BF16: *(uint16_t *)element = bfloat_from_float((float)value); break;
    case DTRAIN_I8:
    case DTRAIN_U8: *(uint8_t *)element = (uint8_t)value; break;
    case DTRAIN_I16:
    case DTRAIN_U16: *(uint16_t *)element = (uint16_t)value; break;
    case DTRAIN_I32:
    case DTRAIN_U32: *(uint32_t *)element = (uint32_t)value; break;
    case DTRAIN_I64:
    case DTRAIN_U64: *(uint64_t *)element = (uint64_t)value; break;
    default: break;
    }
}

double pattern_read(const void *buffer, size_t i, uint32_t dtype) {
    switch (dtype) {
    case DTRAIN_F32: return ((const float *)buffer)[i];
    case DTRAIN_F64: return ((const double *)buffer)[i];
    case DTRAIN_F16: return half_to_double(((const uint16_t *)buffer)[i]);
    case DTRAIN_BF16: return bfloat_to_float(((const uint16_t *)buffer)[i]);
    case DTRAIN_I8: return ((const int8_t *)buffer)[i];
    case DTRAIN_U8: return ((const uint8_t *)buffer)[i];
    case DTRAIN_I16: return ((const int16_t *)buffer)[i];
    case DTRAIN_U16: return ((const uint16_t *)buffer)[i];
    case DTRAIN_I32: return ((const int32_t *)buffer)[i];
    case DTRAIN_U32: return ((const uint32_t *)buffer)[i];
    case DTRAIN_I64: return (double)((const int64_t *)buffer)[i];
    case DTRAIN_U64: return (double)((const uint64_t *)buffer)[i];
    default: return NAN;
    }
}

void pattern_fill(void *buffer, size_t count, uint32_t dtype, int rank, int sample) {
    const size_t element = dtrain_dtype_size(dtype), size = count * element;
    unsigned char *bytes = buffer;
    for (size_t i = 0; i < 3 && i < count; i++)
        pattern_write(bytes + i * element, dtype, pattern_value(i, rank, sample));
    /* Doubles the filled part, which remains a multiple of the period. */
    for (size_t done = 3 * element; done < size; done *= 2)
        memcpy(bytes + done, bytes, done < size - done ? done : size - done);
}
