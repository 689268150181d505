package dtrain

// SPDX-License-Identifier: Apache-2.0

import (
	"fmt"
	"runtime"
	"unsafe"

	"dtrain.org/dtrain/internal/capi"
)

// Float lists the floating-point types of Element.
type Float interface {
	~float32 | ~float64 | F16 | BF16
}

// ClipByGlobalNorm scales arrays, such as the gradients of all tables, in place, so that their
// common L2 norm is at most maxNorm; it returns the norm before that. If an array has a NaN or an
// infinity, it returns ErrInvalid and changes nothing.
func ClipByGlobalNorm[T Float](arrays [][]T, maxNorm float64) (norm float64, err error) {
	pointers := make([]unsafe.Pointer, len(arrays))
	counts, types := make([]uint64, len(arrays)), make([]uint32, len(arrays))
	for i, array := range arrays {
		if err := onHost(viewOf(array), fmt.Sprintf("arrays[%d]", i)); err != nil {
			return 0, err
		}
		pointers[i], counts[i], types[i] = start(array), uint64(len(array)), uint32(TypeOf[T]())
	}
	addresses := capi.Addresses(pointers)
	found := new(float64)
	err = errorOf(capi.Clip_by_global_norm(start(addresses), start(counts), start(types), uint32(len(arrays)), maxNorm,
		unsafe.Pointer(found)))
	runtime.KeepAlive(pointers)
	return *found, err
}
