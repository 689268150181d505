"""Constants of the C API, read from the extension module.

SPDX-License-Identifier: Apache-2.0
"""
import enum

from . import _dtrain


class DType(enum.IntEnum):
    """Types of elements."""
    F32 = _dtrain.DTRAIN_F32
    F64 = _dtrain.DTRAIN_F64
    F16 = _dtrain.DTRAIN_F16
    BF16 = _dtrain.DTRAIN_BF16
    I8 = _dtrain.DTRAIN_I8
    U8 = _dtrain.DTRAIN_U8
    I16 = _dtrain.DTRAIN_I16
    U16 = _dtrain.DTRAIN_U16
    I32 = _dtrain.DTRAIN_I32
    U32 = _dtrain.DTRAIN_U32
    I64 = _dtrain.DTRAIN_I64
    U64 = _dtrain.DTRAIN_U64


class Op(enum.IntEnum):
    """What a reduction does. AVG of integers rounds toward zero; B* are bitwise, for integers;
    ADASUM (all-reduce of floating types) averages gradients that agree and adds orthogonal ones."""
    SUM = _dtrain.DTRAIN_SUM
    AVG = _dtrain.DTRAIN_AVG
    PROD = _dtrain.DTRAIN_PROD
    MIN = _dtrain.DTRAIN_MIN
    MAX = _dtrain.DTRAIN_MAX
    BAND = _dtrain.DTRAIN_BAND
    BOR = _dtrain.DTRAIN_BOR
    BXOR = _dtrain.DTRAIN_BXOR
    ADASUM = _dtrain.DTRAIN_ADASUM


F32, F64, F16, BF16 = DType.F32, DType.F64, DType.F16, DType.BF16
I8, U8, I16, U16 = DType.I8, DType.U8, DType.I16, DType.U16
I32, U32, I64, U64 = DType.I32, DType.U32, DType.I64, DType.U64
SUM, AVG, PROD, MIN, MAX = Op.SUM, Op.AVG, Op.PROD, Op.MIN, Op.MAX
BAND, BOR, BXOR, ADASUM = Op.BAND, Op.BOR, Op.BXOR, Op.ADASUM
ANY_RANK: int = _dtrain.DTRAIN_ANY_RANK
