package dtrain

// SPDX-License-Identifier: Apache-2.0

import (
	"strings"
	"unsafe"

	"dtrain.org/dtrain/internal/capi"
)

// Comm is an ordered group of ranks. All of them call the same collectives in the same order.
type Comm struct {
	operator
	rank, size int
}

// comm makes a communicator from an object.
func (c *Context) comm(from *object, create func(handle uintptr, made *uintptr) error) (
	*Comm, error) {
	made, err := from.make("communicator", capi.Comm_destroy, create)
	if made == nil {
		return nil, err
	}
	comm := &Comm{rank: int(capi.Comm_rank(made.handle)), size: int(capi.Comm_size(made.handle))}
	comm.of(made)
	comm.context, comm.comm = c, made
	if from != c.object { // the context closes it, not the communicator that it was made from
		made.tree.Lock()
		defer made.tree.Unlock()
		from.drop(made)
		made.parent = c.object
		c.object.children = append(c.object.children, made)
	}
	return comm, nil
}

// Close closes the communicator with its tables, graphs and queues; it does not wait for other
// ranks. Operations in flight end with ErrCanceled.
func (c *Comm) Close() error {
	if err := c.check(); err != nil {
		return err
	}
	return c.object.close()
}

// check also refuses nil, which Split and Subset return on ranks outside of the new group.
func (c *Comm) check() error {
	if c != nil && c.self == &c.identity {
		return nil
	}
	return c.wrong()
}

func (c *Comm) wrong() error {
	if c == nil {
		return errorf(ErrState, "this communicator is nil: creating it failed, or this rank is not in the "+
			"group that Split or Subset has made")
	}
	return c.handle.check()
}

// call runs a C call with the communicator.
func (c *Comm) call(function func(uintptr) *capi.Failure) error {
	if err := c.check(); err != nil {
		return err
	}
	return c.object.call(function)
}

// made runs a C call that makes an object from the communicator.
func (c *Comm) made(what string, destroy func(uintptr) *capi.Failure,
	create func(handle uintptr, made *uintptr) error) (*object, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	return c.object.make(what, destroy, create)
}

func (c *Comm) group(create func(handle uintptr, made *uintptr) error) (*Comm, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	return c.context.comm(c.object, create)
}

// Rank is this process's rank in the group; -1 for nil.
func (c *Comm) Rank() int {
	if c == nil {
		return -1
	}
	return c.rank
}

// Size is the number of ranks in the group; -1 for nil.
func (c *Comm) Size() int {
	if c == nil {
		return -1
	}
	return c.size
}

// With returns the same communicator with parameters for its operations.
func (c *Comm) With(params Params) *Comm {
	if c == nil {
		return nil
	}
	other := &Comm{rank: c.rank, size: c.size}
	other.as(&c.operator, params)
	return other
}

// Split makes one communicator per color, its ranks ordered by (key, rank); nil for a rank whose
// color is less than 0. Collective.
func (c *Comm) Split(color, key int) (*Comm, error) {
	return c.group(func(handle uintptr, made *uintptr) error {
		return errorOf(capi.Comm_split(handle, int32(clamp(color)), int32(clamp(key)), unsafe.Pointer(made)))
	})
}

func ranksOf(ranks []int) []int32 {
	list := make([]int32, len(ranks))
	for i, rank := range ranks {
		list[i] = int32(clamp(rank))
	}
	return list
}

// Subset makes a communicator of these ranks in this order; nil on other ranks. Collective.
func (c *Comm) Subset(ranks []int) (*Comm, error) {
	list := ranksOf(ranks)
	return c.group(func(handle uintptr, made *uintptr) error {
		return errorOf(capi.Comm_subset(handle, start(list), int32(len(list)), unsafe.Pointer(made)))
	})
}

// CreateGroup makes a communicator of these ranks in this order, by these ranks alone: each of them
// gives the same list and tag. Other ranks take no part. Works on a broken communicator, too. With's
// timeout is for all of it.
func (c *Comm) CreateGroup(ranks []int, tag int) (*Comm, error) {
	list := ranksOf(ranks)
	return c.group(func(handle uintptr, made *uintptr) error {
		return errorOf(capi.Comm_create_group(handle, start(list), int32(len(list)), int32(clamp(tag)),
			int64(c.params.Timeout), unsafe.Pointer(made)))
	})
}

// Duplicate makes a communicator of the same ranks, with a separate order of calls. Collective.
func (c *Comm) Duplicate() (*Comm, error) {
	return c.group(func(handle uintptr, made *uintptr) error {
		return errorOf(capi.Comm_duplicate(handle, unsafe.Pointer(made)))
	})
}

// Shrink makes a communicator of the ranks that are alive, to continue after ErrPeer. All of them
// call it.
func (c *Comm) Shrink() (*Comm, error) {
	return c.group(func(handle uintptr, made *uintptr) error {
		return errorOf(capi.Comm_shrink(handle, unsafe.Pointer(made)))
	})
}

// ReformParams says how an elastic job goes on.
type ReformParams struct {
	MinSize int  // workers, at least: if there are fewer, it waits for newcomers; 0: option elastic.min
	MaxSize int  // at most, others go on waiting; 0: option elastic.max
	Leave   bool // this process leaves the job, and gets no communicator
}

// Reform makes the communicator of an elastic job's next generation: of the workers that live, and
// of newcomers. All living workers call it. With's timeout is for all of it.
func (c *Comm) Reform(params ReformParams) (*Comm, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	p := capi.NewReform_params()
	defer capi.DeleteReform_params(p)
	p.SetMin_size(int32(clamp(params.MinSize)))
	p.SetMax_size(int32(clamp(params.MaxSize)))
	p.SetTimeout_ns(int64(c.params.Timeout))
	if params.Leave {
		p.SetLeaves(1)
	}
	return c.group(func(handle uintptr, made *uintptr) error {
		return errorOf(capi.Comm_reform(handle, p.Swigcptr(), unsafe.Pointer(made)))
	})
}

// Newcomers returns how many processes wait to be taken in by Reform.
func (c *Comm) Newcomers() (int, error) {
	if err := c.check(); err != nil {
		return 0, err
	}
	handle, err := c.object.enter()
	if err != nil {
		return 0, err
	}
	defer c.object.leave()
	count := capi.Comm_newcomers(handle)
	if count < 0 {
		return 0, errorf(Status(count), "newcomers: %v", Status(count))
	}
	return int(count), nil
}

// Changes tells how the reform that made this communicator has changed the job: generation, size,
// ranks (the old ones; nil for newcomers), came, went. Empty: no reform made it.
func (c *Comm) Changes() (map[string]any, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	handle, err := c.object.enter()
	if err != nil {
		return nil, err
	}
	defer c.object.leave()
	return described(longText(func(buffer unsafe.Pointer, length int64) int64 {
		return capi.Comm_changes(handle, buffer, length)
	}))
}

// Abort ends every operation on all ranks with ErrAborted and this reason.
func (c *Comm) Abort(reason string) error {
	reason, _, _ = strings.Cut(reason, "\x00") // an abort must not fail for its text
	return c.call(func(handle uintptr) *capi.Failure { return capi.Comm_abort(handle, reason) })
}

// Err returns the error that broke the communicator, or nil.
func (c *Comm) Err() error { return c.call(capi.Comm_status) }

// Failed returns the ranks that failed.
func (c *Comm) Failed() ([]int, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
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

// Tune measures the network between the ranks, for the option "tuning.file". Collective.
func (c *Comm) Tune(path string) error {
	if err := whole("the path", path); err != nil {
		return err
	}
	return c.call(func(handle uintptr) *capi.Failure { return capi.Comm_tune(handle, path) })
}
