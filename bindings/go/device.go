package dtrain

// SPDX-License-Identifier: Apache-2.0

// #include <dtrain.h>
import "C"

import (
	"math"
	"sync"
	"unsafe"

	"dtrain.org/dtrain/internal/capi"
)

// DeviceMemory makes memory of an NVIDIA GPU usable by all operations, whole or in part: address is
// a CUdeviceptr, of cudaMalloc. Go must not read or write the elements of Data, which ends the
// program. The program keeps the memory until Close, which is refused with ErrBusy while started
// operations use it. ErrUnsupported says why a context cannot use GPUs.
func DeviceMemory[T Element](c *Context, address uintptr, count int) (*Memory[T], error) {
	var element T
	size := unsafe.Sizeof(element)
	switch {
	case address == 0:
		return nil, errorf(ErrInvalid, "device memory: the address is 0")
	case count <= 0 || uint64(count) > 1<<47/uint64(size) || uintptr(count)*size > math.MaxUint-address:
		return nil, errorf(ErrInvalid, "device memory: there cannot be %d elements at %#x", count, address)
	case address%size != 0:
		return nil, errorf(ErrInvalid, "device memory: %#x is not a multiple of %d, the size of an element",
			address, size)
	}
	if err := c.checkGPUs(); err != nil {
		return nil, err
	}
	var r *region
	r, err := c.region(func(_ uintptr, made *uintptr) error {
		*made = address
		return nil
	}, func(uintptr) *capi.Failure {
		onDevices.Lock()
		defer onDevices.Unlock()
		onDevices.drop(r)
		return nil
	})
	if err != nil {
		return nil, err
	}
	memory := capi.Memory(address)
	c.memories.add(r, memory, uintptr(count)*size)
	onDevices.add(r, memory, uintptr(count)*size)
	return memoryOf(r, unsafe.Slice((*T)(memory), count)), nil
}

// AllocDevice allocates memory for count elements on an NVIDIA GPU, with undefined contents, which Go
// must not read or write. share lets the ranks on this GPU reach it: reductions between them copy
// nothing then. Close frees it.
func AllocDevice[T Element](c *Context, device, count int, share bool) (*Memory[T], error) {
	var element T
	size := unsafe.Sizeof(element)
	if count <= 0 || uint64(count) > 1<<47/uint64(size) {
		return nil, errorf(ErrInvalid, "device memory: cannot allocate %d elements", count)
	}
	if int(int32(device)) != device {
		return nil, errorf(ErrInvalid, "device memory: there is no device %d", device)
	}
	bytes := uintptr(count) * size
	p := capi.NewMem_params()
	defer capi.DeleteMem_params(p)
	p.SetMem_type(C.DTRAIN_MEM_CUDA)
	p.SetDevice(int32(device))
	p.SetLength(uint64(bytes))
	if share {
		p.SetFlags(C.DTRAIN_MEM_SHARED)
	}
	var r *region
	r, err := c.region(func(handle uintptr, made *uintptr) error {
		return errorOf(capi.Mem_create(handle, p.Swigcptr(), unsafe.Pointer(made)))
	}, func(handle uintptr) *capi.Failure {
		if failure := capi.Mem_deregister(handle); failure != nil {
			return failure
		}
		onDevices.Lock()
		defer onDevices.Unlock()
		onDevices.drop(r)
		return nil
	})
	if err != nil {
		return nil, err
	}
	address := capi.Mem_address(r.object.handle)
	c.memories.add(r, address, bytes)
	onDevices.add(r, address, bytes)
	return memoryOf(r, unsafe.Slice((*T)(address), count)), nil
}

// onDevices are the regions of all contexts that lie on GPUs.
var onDevices memories

// onHost refuses memory of GPUs, for what is read on the host.
func onHost(v view, name string) error {
	onDevices.RLock()
	defer onDevices.RUnlock()
	if v.bytes == 0 || onDevices.of(view{v.pointer, 1, 1, v.dtype}) == nil {
		return nil
	}
	return errorf(ErrUnsupported, "%s is memory of a GPU, and is read on the host here; pass a copy on the host", name)
}

// knownGPUs is whether a context can use GPUs: until its library has a plugin for them, it takes
// their memory for the host's. It looks for one when it is described.
type knownGPUs struct {
	sync.Mutex
	yes bool
}

func (c *Context) checkGPUs() error {
	if err := c.check(); err != nil {
		return err
	}
	c.gpus.Lock()
	defer c.gpus.Unlock()
	if c.gpus.yes {
		return nil
	}
	description, err := c.Describe()
	if err != nil {
		return err
	}
	why := any("the library has no plugin for them")
	accelerators, _ := description["accelerators"].([]any)
	for _, one := range accelerators {
		if plugin, _ := one.(map[string]any); plugin["plugin"] == "cuda" {
			c.gpus.yes, why = plugin["used"] == true, plugin["why"]
		}
	}
	if c.gpus.yes {
		return nil
	}
	return errorf(ErrUnsupported, "this context cannot use the memory of GPUs: %v", why)
}
