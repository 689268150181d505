package dtrain

// SPDX-License-Identifier: Apache-2.0

import "dtrain.org/dtrain/internal/capi"

// Starter begins, or prepares, operations on slices of T, and returns at once. What they do is said at
// the functions of the same names. Slices are memory of Alloc or Register, and the library's until the
// operation has finished.
//
//	memory, err := dtrain.Alloc[float32](ctx, 1000)
//	request, err := dtrain.Start[float32](world).AllReduce(memory.Data, memory.Data, dtrain.Sum)
//	result, err := request.Wait(context.Background())
type Starter[T Element] struct {
	comm       *Comm
	persistent bool
}

// Start begins operations.
func Start[T Element](comm *Comm) Starter[T] { return Starter[T]{comm, false} }

// Prepare prepares operations: Request.Start begins them, as often as it is called. Starting has its
// place in the order of calls that all ranks keep.
func Prepare[T Element](comm *Comm) Starter[T] { return Starter[T]{comm, true} }

func (s Starter[T]) begin(x collective) (*Request, error) {
	if err := x.check(s.comm.rank, s.comm.size); err != nil {
		return nil, err
	}
	post := func(handle uintptr, call *capi.Call) *capi.Failure { return x.post(handle, call) }
	if s.persistent {
		return s.comm.prepare(post, x.send, x.recv)
	}
	return s.comm.operator.begin(post, x.send, x.recv)
}

// AllReduce is as AllReduceTo.
func (s Starter[T]) AllReduce(send, recv []T, op Op) (*Request, error) {
	return s.begin(collective{kind: kindAllReduce, send: viewOf(send), recv: viewOf(recv), op: op})
}

// Reduce is as Reduce.
func (s Starter[T]) Reduce(send, recv []T, op Op, root int) (*Request, error) {
	return s.begin(collective{kind: kindReduce, send: viewOf(send), recv: viewOf(recv), op: op, peer: root})
}

// ReduceScatter is as ReduceScatter.
func (s Starter[T]) ReduceScatter(send, recv []T, op Op) (*Request, error) {
	return s.begin(collective{kind: kindReduceScatter, send: viewOf(send), recv: viewOf(recv), op: op})
}

// ReduceScatterV is as ReduceScatterV.
func (s Starter[T]) ReduceScatterV(send, recv []T, counts []int, op Op) (*Request, error) {
	return s.begin(collective{kind: kindReduceScatterV, send: viewOf(send), recv: viewOf(recv),
		counts: counts, op: op})
}

// AllGather is as AllGather.
func (s Starter[T]) AllGather(send, recv []T) (*Request, error) {
	return s.begin(collective{kind: kindAllGather, send: viewOf(send), recv: viewOf(recv)})
}

// AllGatherV is as AllGatherV.
func (s Starter[T]) AllGatherV(send, recv []T, counts, displs []int) (*Request, error) {
	return s.begin(collective{kind: kindAllGatherV, send: viewOf(send), recv: viewOf(recv),
		counts: counts, displs: displs})
}

// Broadcast is as Broadcast.
func (s Starter[T]) Broadcast(data []T, root int) (*Request, error) {
	return s.begin(collective{kind: kindBroadcast, send: viewOf(data), peer: root})
}

// Gather is as Gather.
func (s Starter[T]) Gather(send, recv []T, root int) (*Request, error) {
	return s.begin(collective{kind: kindGather, send: viewOf(send), recv: viewOf(recv), peer: root})
}

// GatherV is as GatherV.
func (s Starter[T]) GatherV(send, recv []T, counts, displs []int, root int) (*Request, error) {
	return s.begin(collective{kind: kindGatherV, send: viewOf(send), recv: viewOf(recv), counts: counts,
		displs: displs, peer: root})
}

// Scatter is as Scatter.
func (s Starter[T]) Scatter(send, recv []T, root int) (*Request, error) {
	return s.begin(collective{kind: kindScatter, send: viewOf(send), recv: viewOf(recv), peer: root})
}

// ScatterV is as ScatterV.
func (s Starter[T]) ScatterV(send, recv []T, counts, displs []int, root int) (*Request, error) {
	return s.begin(collective{kind: kindScatterV, send: viewOf(send), recv: viewOf(recv), counts: counts,
		displs: displs, peer: root})
}

// AllToAll is as AllToAll.
func (s Starter[T]) AllToAll(send, recv []T) (*Request, error) {
	return s.begin(collective{kind: kindAllToAll, send: viewOf(send), recv: viewOf(recv)})
}

// AllToAllV is as AllToAllV.
func (s Starter[T]) AllToAllV(send []T, sendCounts, sendDispls []int, recv []T,
	recvCounts, recvDispls []int) (*Request, error) {
	return s.begin(collective{kind: kindAllToAllV, send: viewOf(send), recv: viewOf(recv),
		counts: sendCounts, displs: sendDispls, recvCounts: recvCounts, recvDispls: recvDispls})
}

// Barrier is as Comm.Barrier.
func (s Starter[T]) Barrier() (*Request, error) { return s.begin(collective{kind: kindBarrier}) }

// Send is as Send.
func (s Starter[T]) Send(data []T, peer int, tag uint32) (*Request, error) {
	return s.begin(collective{kind: kindSend, send: viewOf(data), peer: peer, tag: tag})
}

// Recv is as Recv.
func (s Starter[T]) Recv(data []T, peer int, tag uint32) (*Request, error) {
	return s.begin(collective{kind: kindRecv, send: viewOf(data), peer: peer, tag: tag})
}
