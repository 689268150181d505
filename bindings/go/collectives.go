package dtrain

// SPDX-License-Identifier: Apache-2.0

import "context"

// Collectives and messages. A call returns when it is done. Slices are not copied; to work in
// place, pass the same memory twice. A block is the part of a slice that belongs to one rank. The
// counts of functions whose names end in V are the elements of each rank's block; displs say where
// the blocks begin (nil: one after the other).
//
// Canceling ctx ends a receive, or a send that no rank has received, with ErrCanceled. A collective
// that other ranks may have begun cannot be canceled, and C must not use a Go slice after the call:
// so the communicator is aborted on all ranks. The errors then wrap ctx.Err().

// AllReduce makes data the sum (or another op) of all ranks' data.
func AllReduce[T Element](ctx context.Context, comm *Comm, data []T, op Op) error {
	return comm.collect(ctx, allReduce(viewOf(data), viewOf(data), op))
}

// AllReduceTo makes recv the sum (or another op) of all ranks' send.
func AllReduceTo[T Element](ctx context.Context, comm *Comm, send, recv []T, op Op) error {
	return comm.collect(ctx, allReduce(viewOf(send), viewOf(recv), op))
}

// Reduce is AllReduceTo, but only root gets the result; on other ranks recv may be nil.
func Reduce[T Element](ctx context.Context, comm *Comm, send, recv []T, op Op, root int) error {
	return comm.collect(ctx, reduce(viewOf(send), viewOf(recv), op, root))
}

// ReduceScatter makes recv this rank's block of the sum. In place: recv is that block of send.
func ReduceScatter[T Element](ctx context.Context, comm *Comm, send, recv []T, op Op) error {
	return comm.collect(ctx, reduceScatter(viewOf(send), viewOf(recv), op))
}

// ReduceScatterV is ReduceScatter with blocks of counts elements.
func ReduceScatterV[T Element](ctx context.Context, comm *Comm, send, recv []T, counts []int, op Op) error {
	return comm.collect(ctx, reduceScatterV(viewOf(send), viewOf(recv), counts, op))
}

// AllGather fills recv with all ranks' send. In place: send is this rank's block of recv.
func AllGather[T Element](ctx context.Context, comm *Comm, send, recv []T) error {
	return comm.collect(ctx, allGather(viewOf(send), viewOf(recv)))
}

// AllGatherV is AllGather with blocks of counts elements.
func AllGatherV[T Element](ctx context.Context, comm *Comm, send, recv []T, counts, displs []int) error {
	return comm.collect(ctx, allGatherV(viewOf(send), viewOf(recv), counts, displs))
}

// Broadcast copies root's data to all ranks.
func Broadcast[T Element](ctx context.Context, comm *Comm, data []T, root int) error {
	return comm.collect(ctx, broadcast(viewOf(data), root))
}

// Gather fills root's recv with all ranks' send; on other ranks recv may be nil.
func Gather[T Element](ctx context.Context, comm *Comm, send, recv []T, root int) error {
	return comm.collect(ctx, gather(viewOf(send), viewOf(recv), root))
}

// GatherV is Gather with blocks of counts elements; all ranks pass the counts.
func GatherV[T Element](ctx context.Context, comm *Comm, send, recv []T, counts, displs []int,
	root int) error {
	return comm.collect(ctx, gatherV(viewOf(send), viewOf(recv), counts, displs, root))
}

// Scatter fills recv with this rank's block of root's send; on other ranks send may be nil.
func Scatter[T Element](ctx context.Context, comm *Comm, send, recv []T, root int) error {
	return comm.collect(ctx, scatter(viewOf(send), viewOf(recv), root))
}

// ScatterV is Scatter with blocks of counts elements; all ranks pass the counts.
func ScatterV[T Element](ctx context.Context, comm *Comm, send, recv []T, counts, displs []int,
	root int) error {
	return comm.collect(ctx, scatterV(viewOf(send), viewOf(recv), counts, displs, root))
}

// AllToAll copies block j of send to rank j; block j of recv comes from rank j.
func AllToAll[T Element](ctx context.Context, comm *Comm, send, recv []T) error {
	return comm.collect(ctx, allToAll(viewOf(send), viewOf(recv)))
}

// AllToAllV is AllToAll with a separate block length for each pair of ranks.
func AllToAllV[T Element](ctx context.Context, comm *Comm, send []T, sendCounts, sendDispls []int,
	recv []T, recvCounts, recvDispls []int) error {
	return comm.collect(ctx, allToAllV(viewOf(send), sendCounts, sendDispls, viewOf(recv), recvCounts, recvDispls))
}

// Barrier waits until all ranks have called it.
func Barrier(ctx context.Context, comm *Comm) error {
	return comm.collect(ctx, collective{kind: kindBarrier})
}

// Send sends a message to peer; messages of one tag arrive in order.
func Send[T Element](ctx context.Context, comm *Comm, data []T, peer int, tag uint32) error {
	return comm.collect(ctx, message(kindSend, viewOf(data), peer, tag))
}

// Recv receives a message from peer, or from AnyRank; the result has its sender and its length.
func Recv[T Element](ctx context.Context, comm *Comm, data []T, peer int, tag uint32) (Result, error) {
	return comm.receive(ctx, message(kindRecv, viewOf(data), peer, tag))
}
