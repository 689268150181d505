package dtrain

// SPDX-License-Identifier: Apache-2.0

import (
	"context"
	"math"
	"runtime"
	"unsafe"

	"dtrain.org/dtrain/internal/capi"
)

type kind int

const (
	kindBarrier kind = iota
	kindAllReduce
	kindReduce
	kindReduceScatter
	kindReduceScatterV
	kindAllGather
	kindAllGatherV
	kindBroadcast
	kindGather
	kindGatherV
	kindScatter
	kindScatterV
	kindAllToAll
	kindAllToAllV
	kindSend
	kindRecv
)

// collective is a collective or a message with its arguments; those with one slice have it in send.
type collective struct {
	kind                   kind
	send, recv             view
	counts, displs         []int // for alltoallv: those of send
	recvCounts, recvDispls []int
	op                     Op
	peer                   int // or the root
	tag                    uint32
}

const yieldBytes = 1 << 16

func allReduce(send, recv view, op Op) collective {
	return collective{kind: kindAllReduce, send: send, recv: recv, op: op}
}

func reduce(send, recv view, op Op, root int) collective {
	return collective{kind: kindReduce, send: send, recv: recv, op: op, peer: root}
}

func reduceScatter(send, recv view, op Op) collective {
	return collective{kind: kindReduceScatter, send: send, recv: recv, op: op}
}

func reduceScatterV(send, recv view, counts []int, op Op) collective {
	return collective{kind: kindReduceScatterV, send: send, recv: recv, counts: counts, op: op}
}

func allGather(send, recv view) collective {
	return collective{kind: kindAllGather, send: send, recv: recv}
}

func allGatherV(send, recv view, counts, displs []int) collective {
	return collective{kind: kindAllGatherV, send: send, recv: recv, counts: counts,
		displs: displs}
}

func broadcast(data view, root int) collective {
	return collective{kind: kindBroadcast, send: data, peer: root}
}

func gather(send, recv view, root int) collective {
	return collective{kind: kindGather, send: send, recv: recv, peer: root}
}

func gatherV(send, recv view, counts, displs []int, root int) collective {
	return collective{kind: kindGatherV, send: send, recv: recv, counts: counts,
		displs: displs, peer: root}
}

func scatter(send, recv view, root int) collective {
	return collective{kind: kindScatter, send: send, recv: recv, peer: root}
}

func scatterV(send, recv view, counts, displs []int, root int) collective {
	return collective{kind: kindScatterV, send: send, recv: recv, counts: counts,
		displs: displs, peer: root}
}

func allToAll(send, recv view) collective {
	return collective{kind: kindAllToAll, send: send, recv: recv}
}

func allToAllV(send view, sendCounts, sendDispls []int, recv view,
	recvCounts, recvDispls []int) collective {
	return collective{kind: kindAllToAllV, send: send, recv: recv, counts: sendCounts,
		displs: sendDispls, recvCounts: recvCounts, recvDispls: recvDispls}
}

func message(kind kind, data view, peer int, tag uint32) collective {
	return collective{kind: kind, send: data, peer: peer, tag: tag}
}

func (c *Comm) collect(ctx context.Context, x collective) error {
	if err := c.admit(&x); err != nil {
		return err
	}
	// A goroutine that has been in C calls only for 10 ms loses its processor in every longer call,
	// and Go wakes threads for that. A goroutine that yields keeps it.
	if x.send.bytes >= yieldBytes {
		runtime.Gosched()
	}
	return c.run(ctx, func(handle uintptr, call *capi.Call) *capi.Failure { return x.post(handle, call) })
}

func (c *Comm) receive(ctx context.Context, x collective) (Result, error) {
	if err := c.check(); err != nil {
		return Result{}, err
	}
	return c.find(ctx, func(handle uintptr, call *capi.Call) *capi.Failure { return x.post(handle, call) })
}

func (c *Comm) start(x collective) (*Request, error) {
	if err := c.admit(&x); err != nil {
		return nil, err
	}
	return c.begin(func(handle uintptr, call *capi.Call) *capi.Failure { return x.post(handle, call) },
		x.send, x.recv)
}

func (c *Comm) ready(x collective) (*Request, error) {
	if err := c.admit(&x); err != nil {
		return nil, err
	}
	return c.prepare(func(handle uintptr, call *capi.Call) *capi.Failure { return x.post(handle, call) },
		x.send, x.recv)
}

func (c *Comm) admit(x *collective) error {
	if err := c.check(); err != nil {
		return err
	}
	return x.check(c.rank, c.size)
}

// check refuses what would have C read or write beyond a slice.
func (x *collective) check(rank, size int) error {
	isRoot := rank == x.peer
	switch x.kind {
	case kindAllReduce:
		return x.blocks(1, 1)
	case kindReduce:
		if !isRoot {
			return nil
		}
		return x.blocks(1, 1)
	case kindReduceScatter:
		return x.blocks(size, 1)
	case kindAllGather:
		return x.blocks(1, size)
	case kindGather:
		if !isRoot {
			return nil
		}
		return x.blocks(1, size)
	case kindScatter:
		if !isRoot {
			return nil
		}
		return x.blocks(size, 1)
	case kindAllToAll:
		if x.send.count%size != 0 {
			return errorf(ErrInvalid, "%d elements cannot be divided into %d equal blocks", x.send.count, size)
		}
		return x.blocks(1, 1)
	case kindReduceScatterV:
		return first(ragged("send", x.send, x.counts, nil, size), own(x.recv, "recv", x.counts, rank))
	case kindAllGatherV:
		return first(ragged("recv", x.recv, x.counts, x.displs, size), own(x.send, "send", x.counts, rank))
	case kindGatherV:
		if !isRoot {
			x.recv.count = math.MaxInt // is not used
		}
		return first(ragged("recv", x.recv, x.counts, x.displs, size), own(x.send, "send", x.counts, rank))
	case kindScatterV:
		if !isRoot {
			x.send.count = math.MaxInt
		}
		return first(ragged("send", x.send, x.counts, x.displs, size), own(x.recv, "recv", x.counts, rank))
	case kindAllToAllV:
		return first(ragged("send", x.send, x.counts, x.displs, size),
			ragged("recv", x.recv, x.recvCounts, x.recvDispls, size))
	default:
		return nil
	}
}

func first(errors ...error) error {
	for _, err := range errors {
		if err != nil {
			return err
		}
	}
	return nil
}

// blocks checks that send has `sent` and recv `received` blocks of the same size.
func (x *collective) blocks(sent, received int) error {
	if x.send.count*received != x.recv.count*sent || x.send.count%sent != 0 {
		return errorf(ErrInvalid, "send has %d elements and recv %d, which are not %d and %d equal blocks",
			x.send.count, x.recv.count, sent, received)
	}
	return nil
}

// list checks a list that has one number for each rank.
func list(numbers []int, size int) error {
	if len(numbers) != size {
		return errorf(ErrInvalid, "counts or displs are for %d ranks; the communicator has %d", len(numbers), size)
	}
	for _, number := range numbers {
		if number < 0 {
			return errorf(ErrInvalid, "counts and displs must be 0 or more, not %d", number)
		}
	}
	return nil
}

// own checks that a slice is as long as this rank's block.
func own(slice view, name string, counts []int, rank int) error {
	if len(counts) > rank && slice.count != counts[rank] {
		return errorf(ErrInvalid, "%s has %d elements; this rank's count is %d", name, slice.count,
			counts[rank])
	}
	return nil
}

// ragged checks that the blocks lie within a slice.
func ragged(name string, slice view, counts, displs []int, size int) error {
	err := list(counts, size)
	if err == nil && displs != nil {
		err = list(displs, size)
	}
	if err != nil {
		return err
	}
	end, next := 0, 0
	for i, count := range counts {
		if displs != nil {
			next = displs[i]
		}
		if count > math.MaxInt-next {
			return errorf(ErrInvalid, "counts and displs are too large")
		}
		next += count
		if next > end {
			end = next
		}
	}
	if end > slice.count {
		return errorf(ErrInvalid, "the blocks end at element %d; %s has %d", end, name, slice.count)
	}
	return nil
}

// post passes the operation to C.
func (x *collective) post(comm uintptr, call *capi.Call) *capi.Failure {
	to, from := x.recv.pointer, x.send.pointer
	count, dtype, op := uint64(x.send.count), uint32(x.send.dtype), uint32(x.op)
	peer := int32(clamp(x.peer))
	switch x.kind {
	case kindBarrier:
		return capi.Barrier(comm, call)
	case kindAllReduce:
		return capi.Allreduce(comm, from, to, count, dtype, op, call)
	case kindReduce:
		return capi.Reduce(comm, from, to, count, dtype, op, peer, call)
	case kindReduceScatter:
		return capi.Reduce_scatter(comm, from, to, uint64(x.recv.count), dtype, op, call)
	case kindReduceScatterV:
		return capi.Reduce_scatterv(comm, from, to, start(x.counts), dtype, op, call)
	case kindAllGather:
		return capi.Allgather(comm, from, to, count, dtype, call)
	case kindAllGatherV:
		return capi.Allgatherv(comm, from, to, start(x.counts), start(x.displs), dtype, call)
	case kindBroadcast:
		return capi.Broadcast(comm, from, count, dtype, peer, call)
	case kindGather:
		return capi.Gather(comm, from, to, count, dtype, peer, call)
	case kindGatherV:
		return capi.Gatherv(comm, from, to, start(x.counts), start(x.displs), dtype, peer, call)
	case kindScatter:
		return capi.Scatter(comm, from, to, uint64(x.recv.count), dtype, peer, call)
	case kindScatterV:
		return capi.Scatterv(comm, from, to, start(x.counts), start(x.displs), dtype, peer, call)
	case kindAllToAll:
		return capi.Alltoall(comm, from, to, count/uint64(capi.Comm_size(comm)), dtype, call)
	case kindAllToAllV:
		return capi.Alltoallv(comm, from, start(x.counts), start(x.displs), to, start(x.recvCounts),
			start(x.recvDispls), dtype, call)
	case kindSend:
		return capi.Send(comm, from, count, dtype, peer, x.tag, call)
	default:
		return capi.Recv(comm, from, count, dtype, peer, x.tag, call)
	}
}

// C reads counts and displs as 64-bit numbers.
var _ [8]byte = [unsafe.Sizeof(int(0))]byte{}
