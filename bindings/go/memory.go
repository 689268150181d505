package dtrain

// SPDX-License-Identifier: Apache-2.0

// #include <dtrain.h>
import "C"

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"dtrain.org/dtrain/internal/capi"
)

// Memory is memory outside of Go's heap, which operations may use after a call has returned:
// allocated by Alloc, or the program's (Register, DeviceMemory).
type Memory[T Element] struct {
	// Data is the memory. It must not be used after Close.
	Data []T
	identity
	region *region
}

// region is memory that C may use. Go slices within it are recognized by their addresses.
type region struct {
	object     *object
	begin, end uintptr
	users      int64 // operations in flight
}

type memories struct {
	sync.RWMutex
	regions []*region
}

// Alloc allocates zeroed memory for count elements that the host's other ranks can map: collectives
// between them need not copy it.
func Alloc[T Element](c *Context, count int) (*Memory[T], error) {
	var element T
	size := unsafe.Sizeof(element)
	if count <= 0 || uint64(count) > 1<<47/uint64(size) {
		return nil, errorf(ErrInvalid, "alloc: cannot allocate %d elements", count)
	}
	bytes := uintptr(count) * size
	r, err := c.region(func(handle uintptr, made *uintptr) error {
		return errorOf(capi.Mem_alloc(handle, uint64(bytes), unsafe.Pointer(made)))
	}, capi.Mem_deregister)
	if err != nil {
		return nil, err
	}
	address := capi.Mem_address(r.object.handle)
	c.memories.add(r, address, bytes)
	return memoryOf(r, unsafe.Slice((*T)(address), count)), nil
}

// Register registers memory of the program with the transports. share moves its pages into memory
// that the host's other ranks can map (no thread may write to them during this call and Close). It
// must be memory of C, or of mmap: Go memory is refused, since C must not keep its address.
func Register[T Element](c *Context, data []T, share bool) (*Memory[T], error) {
	v := viewOf(data)
	if v.bytes == 0 {
		return nil, errorf(ErrInvalid, "register: the slice is empty")
	}
	if err := onHost(v, "register: the slice"); err != nil {
		return nil, err
	}
	if isGo(v.pointer) {
		return nil, errorf(ErrInvalid, "register: this is Go memory: "+
			"C must not keep its address; use dtrain.Alloc")
	}
	p := capi.NewMem_params()
	defer capi.DeleteMem_params(p)
	p.SetMem_type(C.DTRAIN_MEM_HOST)
	p.SetAddress(v.pointer)
	p.SetLength(uint64(v.bytes))
	if share {
		p.SetFlags(C.DTRAIN_MEM_SHARED)
	}
	r, err := c.region(func(handle uintptr, made *uintptr) error {
		return errorOf(capi.Mem_register(handle, p.Swigcptr(), unsafe.Pointer(made)))
	}, capi.Mem_deregister)
	if err != nil {
		return nil, err
	}
	c.memories.add(r, v.pointer, uintptr(v.bytes))
	return memoryOf(r, data), nil
}

// isGo uses a check of cgo, which panics on Go memory.
func isGo(p unsafe.Pointer) (is bool) {
	defer func() { is = recover() != nil }()
	capi.MustNotBeGo(p)
	return false
}

// Close frees or deregisters the memory. ErrBusy while an operation uses it.
func (m *Memory[T]) Close() error {
	if err := m.check("memory"); err != nil {
		return err
	}
	return m.region.object.close()
}

func memoryOf[T Element](r *region, data []T) *Memory[T] {
	m := &Memory[T]{Data: data, region: r}
	m.born()
	return m
}

func (c *Context) region(create func(uintptr, *uintptr) error,
	free func(uintptr) *capi.Failure) (*region, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	r := &region{}
	made, err := c.object.make("memory", func(handle uintptr) *capi.Failure {
		c.events.drain()
		c.memories.Lock() // so that no operation starts to use it meanwhile
		defer c.memories.Unlock()
		if atomic.LoadInt64(&r.users) != 0 {
			return &capi.Failure{Status: int32(ErrBusy), Rank: -1,
				Text: "an operation in flight uses this memory; wait for it first"}
		}
		if failure := free(handle); failure != nil {
			return failure
		}
		c.memories.drop(r)
		return nil
	}, create)
	if err != nil {
		return nil, err
	}
	made.isMemory = true
	r.object = made
	return r, nil
}

func (m *memories) add(r *region, begin unsafe.Pointer, bytes uintptr) {
	m.Lock()
	defer m.Unlock()
	r.begin, r.end = uintptr(begin), uintptr(begin)+bytes
	m.regions = append(m.regions, r)
}

func (m *memories) drop(r *region) {
	for i, other := range m.regions {
		if other == r {
			m.regions = append(m.regions[:i], m.regions[i+1:]...)
			return
		}
	}
}

// hold keeps the regions of slices for an operation that outlasts its call; it refuses other
// memory.
func (m *memories) hold(views ...view) ([]*region, error) {
	m.RLock()
	defer m.RUnlock()
	held := make([]*region, 0, len(views))
	for _, v := range views {
		if v.bytes == 0 {
			continue
		}
		r := m.of(v)
		if r == nil {
			release(held)
			return nil, errorf(ErrInvalid, "an operation that outlasts its call needs memory of "+
				"dtrain.Alloc or dtrain.Register, not of Go")
		}
		atomic.AddInt64(&r.users, 1)
		held = append(held, r)
	}
	return held, nil
}

func (m *memories) of(v view) *region {
	begin := uintptr(v.pointer)
	for _, r := range m.regions {
		if begin >= r.begin && begin < r.end && uintptr(v.bytes) <= r.end-begin {
			return r
		}
	}
	return nil
}

func release(held []*region) {
	for _, r := range held {
		atomic.AddInt64(&r.users, -1)
	}
}
