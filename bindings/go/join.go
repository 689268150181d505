package dtrain

// SPDX-License-Identifier: Apache-2.0

import (
	"context"
	"time"
	"unsafe"

	"dtrain.org/dtrain/internal/capi"
)

// JoinParams says how ranks find each other; the zero value means the environment.
type JoinParams struct {
	// Rendezvous is "env", "tcp://host:port" (rank 0 listens there), "file:///dir/name", or, with
	// AllGather, "oob"; "" means AllGather if it is set, else the environment.
	Rendezvous          string
	Size, Rank, Servers int           // of the job, if Size > 0; else from the environment
	Timeout             time.Duration // 0: option join.timeout; less than 0: none
	// AllGather exchanges bytes between all processes; it returns those of all ranks, then of all servers.
	AllGather func(mine []byte) ([][]byte, error)
}

// Join makes a communicator of all workers of a job. All ranks call it. The deadline of ctx ends
// it, but not its cancellation.
func (c *Context) Join(ctx context.Context, params JoinParams) (*Comm, error) {
	if err := first(c.check(), whole("the rendezvous", params.Rendezvous)); err != nil {
		return nil, err
	}
	timeout, err := blockingTimeout(ctx, params.Timeout)
	if err != nil {
		return nil, err
	}
	p := capi.NewComm_params()
	defer capi.DeleteComm_params(p)
	p.SetSize(int32(clamp(params.Size)))
	p.SetRank(int32(clamp(params.Rank)))
	p.SetServers(int32(clamp(params.Servers)))
	p.SetTimeout_ns(timeout)
	exchange, err := exchangeOf(p, params.AllGather, params.Size, params.Servers)
	if err != nil {
		return nil, err
	}
	defer exchange.drop()
	where := rendezvous(params.Rendezvous, params.AllGather != nil)
	return c.comm(c.object, func(handle uintptr, made *uintptr) error {
		return exchange.explain(capi.Comm_create(handle, where, p.Swigcptr(), unsafe.Pointer(made)))
	})
}

// DescribeJoin returns how Join with these parameters would join from this process: as what, where,
// and what says so or stands against it; and what each launcher's environment says here.
func DescribeJoin(params JoinParams) (map[string]any, error) {
	if err := whole("the rendezvous", params.Rendezvous); err != nil {
		return nil, err
	}
	p := capi.NewComm_params()
	defer capi.DeleteComm_params(p)
	p.SetSize(int32(clamp(params.Size)))
	p.SetRank(int32(clamp(params.Rank)))
	p.SetServers(int32(clamp(params.Servers)))
	where := rendezvous(params.Rendezvous, params.AllGather != nil)
	return described(longText(func(buffer unsafe.Pointer, length int64) int64 {
		return capi.Join_describe(where, p.Swigcptr(), buffer, length)
	}))
}

// JoinRole returns as what the environment starts this process: RoleWorker where nothing tells.
func JoinRole() (Role, error) {
	var role uint32
	err := errorOf(capi.Join_role(unsafe.Pointer(&role)))
	return Role(role), err
}

func rendezvous(said string, exchanged bool) string {
	switch {
	case said != "":
		return said
	case exchanged:
		return "oob"
	default:
		return "env"
	}
}

// exchangeOf sets the callback in params; the callback lives until it is dropped.
func exchangeOf(params interface{ Set_oob(uint64) }, exchange func([]byte) ([][]byte, error), size,
	servers int) (*callback, error) {
	if exchange == nil {
		return &callback{}, nil
	}
	if size <= 0 || servers < 0 { // C allocates memory for this many processes
		return nil, errorf(ErrInvalid, "AllGather needs the Size of the job")
	}
	made := &callback{what: "AllGather"}
	made.number = capi.NewCallback(capi.AllGather(func(send []byte, recv unsafe.Pointer) bool {
		return made.run(func() error { return exchangeAll(exchange, size+servers, send, recv) })
	}))
	params.Set_oob(made.number)
	return made, nil
}

func exchangeAll(exchange func([]byte) ([][]byte, error), size int, send []byte, recv unsafe.Pointer) error {
	blobs, err := exchange(append([]byte(nil), send...))
	if err != nil {
		return err
	}
	if len(blobs) != size {
		return errorf(ErrInvalid, "AllGather returned bytes of %d processes, not of %d", len(blobs), size)
	}
	all := unsafe.Slice((*byte)(recv), size*len(send))
	for i, blob := range blobs {
		if len(blob) != len(send) {
			return errorf(ErrInvalid, "AllGather returned %d bytes of rank %d, not %d", len(blob), i, len(send))
		}
		copy(all[i*len(send):], blob)
	}
	return nil
}

// World returns the communicator of the job that the environment names (without one, of this
// process alone). The first call joins it: all ranks call it.
func (c *Context) World() (*Comm, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	c.world.Lock()
	defer c.world.Unlock()
	if c.world.comm != nil {
		return c.world.comm, nil
	}
	comm, err := c.Join(context.Background(), JoinParams{})
	if err == nil {
		c.world.comm = comm
	}
	return comm, err
}

// blockingTimeout is the timeout, in nanoseconds, of a call that only a deadline ends.
func blockingTimeout(ctx context.Context, timeout time.Duration) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, unbegun(err)
	}
	deadline, limited := ctx.Deadline()
	if !limited {
		return int64(timeout), nil
	}
	left := time.Until(deadline)
	if left <= 0 {
		return 0, unbegun(context.DeadlineExceeded)
	}
	if timeout > 0 && timeout < left {
		left = timeout
	}
	return int64(left), nil
}
