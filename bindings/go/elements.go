package dtrain

// SPDX-License-Identifier: Apache-2.0

// #include <dtrain.h>
import "C"

import (
	"reflect"
	"unsafe"
)

// F16 is an IEEE 754 binary16 number, as its bits.
type F16 uint16

// BF16 is the upper half of a float32, as its bits.
type BF16 uint16

// Element lists the element types of operations; types defined from them (type grad float32) are
// allowed, too. Slices of them are not copied. Types defined from uint16 are excluded, since they
// might be F16 or BF16.
type Element interface {
	~float32 | ~float64 | F16 | BF16 | ~int8 | ~uint8 | ~int16 | uint16 | ~int32 | ~uint32 | ~int64 | ~uint64
}

// DType names a type of elements where a Go type does not.
type DType uint32

// Types of elements.
const (
	TypeF32  DType = C.DTRAIN_F32
	TypeF64  DType = C.DTRAIN_F64
	TypeF16  DType = C.DTRAIN_F16
	TypeBF16 DType = C.DTRAIN_BF16
	TypeI8   DType = C.DTRAIN_I8
	TypeU8   DType = C.DTRAIN_U8
	TypeI16  DType = C.DTRAIN_I16
	TypeU16  DType = C.DTRAIN_U16
	TypeI32  DType = C.DTRAIN_I32
	TypeU32  DType = C.DTRAIN_U32
	TypeI64  DType = C.DTRAIN_I64
	TypeU64  DType = C.DTRAIN_U64
)

// TypeOf is the DType of a type of elements.
func TypeOf[T Element]() DType {
	var element T
	switch any(element).(type) {
	case float32:
		return TypeF32
	case float64:
		return TypeF64
	case F16:
		return TypeF16
	case BF16:
		return TypeBF16
	case int8:
		return TypeI8
	case uint8:
		return TypeU8
	case int16:
		return TypeI16
	case int32:
		return TypeI32
	case uint32:
		return TypeU32
	case int64:
		return TypeI64
	case uint64:
		return TypeU64
	case uint16:
		return TypeU16
	default:
		return typeOfKind[reflect.TypeOf(element).Kind()]
	}
}

// typeOfKind is the DType of types that the program defines.
var typeOfKind = map[reflect.Kind]DType{
	reflect.Float32: TypeF32, reflect.Float64: TypeF64,
	reflect.Int8: TypeI8, reflect.Uint8: TypeU8, reflect.Int16: TypeI16,
	reflect.Int32: TypeI32, reflect.Uint32: TypeU32, reflect.Int64: TypeI64, reflect.Uint64: TypeU64,
}

// view is a slice as C sees it; its pointer keeps the slice's memory alive.
type view struct {
	pointer unsafe.Pointer
	count   int
	bytes   int
	dtype   DType
}

func viewOf[T Element](slice []T) view {
	var element T
	return view{start(slice), len(slice), len(slice) * int(unsafe.Sizeof(element)), TypeOf[T]()}
}

// start is the address of a slice's first element, even if the slice is empty.
func start[T any](slice []T) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&slice)) }
