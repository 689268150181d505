package dtrain

// SPDX-License-Identifier: Apache-2.0

import "context"

// Collectives and messages. A call returns when it is done. Slices are used where they are; in place is
// to give the same memory twice. A block is what one rank gives or gets; the counts of those whose names
// end in V are numbers of elements, one for each rank, and displs where the blocks begin (nil: one after
// the other).
//
// When ctx is canceled a receive, or a send that nobody has taken, ends with ErrCanceled. Collectives
// cannot be called back, and a slice of Go's must not be used after the call: the communicator is
// aborted on all ranks. Errors wrap ctx.Err() then.

// AllReduce makes data the sum (or another op) of all ranks' data.
func AllReduce[T Element](ctx context.Context, comm *Comm, data []T, op Op) error {
	return comm.collect(ctx, allReduce(viewOf(data), viewOf(data), op))
}

// AllReduceTo makes recv the sum (or another op) of all ranks' send.
func AllReduceTo[T Element](ctx context.Context, comm *Comm, send, recv []T, op Op) error {
	return comm.collect(ctx, allReduce(viewOf(send), viewOf(recv), op))
}

// Reduce is AllReduceTo with the result on root only; elsewhere recv may be nil.
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

// AllGather makes recv all ranks' send. In place: send is this rank's block of recv.
func AllGather[T Element](ctx context.Context, comm *Comm, send, recv []T) error {
	return comm.collect(ctx, allGather(viewOf(send), viewOf(recv)))
}

// AllGatherV is AllGather with blocks of counts elements.
func AllGatherV[T Element](ctx context.Context, comm *Comm, send, recv []T, counts, displs []int) error {
	return comm.collect(ctx, allGatherV(viewOf(send), viewOf(recv), counts, displs))
}

// Broadcast makes data root's data.
func Broadcast[T Element](ctx context.Context, comm *Comm, data []T, root int) error {
	return comm.collect(ctx, broadcast(viewOf(data), root))
}

// Gather makes root's recv all ranks' send; elsewhere recv may be nil.
func Gather[T Element](ctx context.Context, comm *Comm, send, recv []T, root int) error {
	return comm.collect(ctx, gather(viewOf(send), viewOf(recv), root))
}

// GatherV is Gather with blocks of counts elements, which all ranks give.
func GatherV[T Element](ctx context.Context, comm *Comm, send, recv []T, counts, displs []int,
	root int) error {
	return comm.collect(ctx, gatherV(viewOf(send), viewOf(recv), counts, displs, root))
}

// Scatter makes recv this rank's block of root's send, which may be nil elsewhere.
func Scatter[T Element](ctx context.Context, comm *Comm, send, recv []T, root int) error {
	return comm.collect(ctx, scatter(viewOf(send), viewOf(recv), root))
}

// ScatterV is Scatter with blocks of counts elements, which all ranks give.
func ScatterV[T Element](ctx context.Context, comm *Comm, send, recv []T, counts, displs []int,
	root int) error {
	return comm.collect(ctx, scatterV(viewOf(send), viewOf(recv), counts, displs, root))
}

// AllToAll brings block j of send to rank j; block j of recv comes from there.
func AllToAll[T Element](ctx context.Context, comm *Comm, send, recv []T) error {
	return comm.collect(ctx, allToAll(viewOf(send), viewOf(recv)))
}

// AllToAllV is AllToAll with blocks of own lengths for each pair of ranks.
func AllToAllV[T Element](ctx context.Context, comm *Comm, send []T, sendCounts, sendDispls []int,
	recv []T, recvCounts, recvDispls []int) error {
	return comm.collect(ctx, allToAllV(viewOf(send), sendCounts, sendDispls, viewOf(recv), recvCounts, recvDispls))
}

// Barrier waits until all ranks have come here.
func Barrier(ctx context.Context, comm *Comm) error {
	return comm.collect(ctx, collective{kind: kindBarrier})
}

// Send sends a message to peer; those of one tag arrive in order.
func Send[T Element](ctx context.Context, comm *Comm, data []T, peer int, tag uint32) error {
	return comm.collect(ctx, message(kindSend, viewOf(data), peer, tag))
}

// Recv receives a message of peer, or of AnyRank; the result tells from whom and how long.
func Recv[T Element](ctx context.Context, comm *Comm, data []T, peer int, tag uint32) (Result, error) {
	return comm.receive(ctx, message(kindRecv, viewOf(data), peer, tag))
}
