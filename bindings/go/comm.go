package dtrain

// SPDX-License-Identifier: Apache-2.0

import (
	"context"
	"unsafe"

	"dtrain.org/dtrain/internal/capi"
)

// Comm is an ordered group of ranks. All of them call the same collectives in the same order.
type Comm struct {
	operator
	rank, size int
}

// comm makes one of an object.
func (c *Context) comm(from *object, create func(handle uintptr, made *uintptr) error) (
	*Comm, error) {
	made, err := from.make("communicator", capi.Comm_destroy, create)
	if made == nil {
		return nil, err
	}
	comm := &Comm{rank: int(capi.Comm_rank(made.handle)), size: int(capi.Comm_size(made.handle))}
	comm.operator = operator{object: made, context: c, comm: made}
	if from != c.object { // closed with the context, not with the one it was made of
		made.tree.Lock()
		defer made.tree.Unlock()
		from.drop(made)
		made.parent = c.object
		c.object.children = append(c.object.children, made)
	}
	return comm, nil
}

// Close closes it, with its tables, graphs and queues; no other rank waits for this. Operations in
// flight end with ErrCanceled.
func (c *Comm) Close() error { return c.object.close() }

// Rank is this process's number in the group.
func (c *Comm) Rank() int { return c.rank }

// Size is how many ranks the group has.
func (c *Comm) Size() int { return c.size }

// With is the same communicator for operations with parameters.
func (c *Comm) With(params Params) *Comm {
	other := *c
	other.params = params
	return &other
}

// Split makes one communicator for each color, its ranks ordered by (key, rank); nil for a rank whose
// color is less than 0. Collective.
func (c *Comm) Split(color, key int) (*Comm, error) {
	return c.context.comm(c.object, func(handle uintptr, made *uintptr) error {
		return errorOf(capi.Comm_split(handle, int32(clamp(color)), int32(clamp(key)), unsafe.Pointer(made)))
	})
}

// Subset makes a communicator of these ranks in this order; nil on the others. Collective.
func (c *Comm) Subset(ranks []int) (*Comm, error) {
	list := make([]int32, len(ranks))
	for i, rank := range ranks {
		list[i] = int32(clamp(rank))
	}
	return c.context.comm(c.object, func(handle uintptr, made *uintptr) error {
		return errorOf(capi.Comm_subset(handle, start(list), int32(len(list)), unsafe.Pointer(made)))
	})
}

// Duplicate has the same ranks, with an order of calls of its own. Collective.
func (c *Comm) Duplicate() (*Comm, error) {
	return c.context.comm(c.object, func(handle uintptr, made *uintptr) error {
		return errorOf(capi.Comm_duplicate(handle, unsafe.Pointer(made)))
	})
}

// Shrink makes a communicator of the ranks that are alive: the way on after ErrPeer. All of them call
// it.
func (c *Comm) Shrink() (*Comm, error) {
	return c.context.comm(c.object, func(handle uintptr, made *uintptr) error {
		return errorOf(capi.Comm_shrink(handle, unsafe.Pointer(made)))
	})
}

// Abort ends every operation, on all ranks, with ErrAborted and this reason.
func (c *Comm) Abort(reason string) error {
	return c.object.call(func(handle uintptr) *capi.Failure { return capi.Comm_abort(handle, reason) })
}

// Err is why the communicator is broken, or nil.
func (c *Comm) Err() error { return c.object.call(capi.Comm_status) }

// Failed are the ranks that failed.
func (c *Comm) Failed() ([]int, error) {
	handle, err := c.object.enter()
	if err != nil {
		return nil, err
	}
	defer c.object.leave()
	list := make([]int32, c.size)
	count := capi.Comm_failed(handle, start(list), int32(len(list)))
	if count < 0 {
		return nil, errorf(Status(count), "failed ranks: %v", Status(count))
	}
	ranks := make([]int, count)
	for i := range ranks {
		ranks[i] = int(list[i])
	}
	return ranks, nil
}

// Barrier waits until all ranks have come here.
func (c *Comm) Barrier(ctx context.Context) error { return c.run(ctx, capi.Barrier) }

// Tune measures the network between the ranks, for the option "tuning.file". Collective.
func (c *Comm) Tune(path string) error {
	return c.object.call(func(handle uintptr) *capi.Failure { return capi.Comm_tune(handle, path) })
}
