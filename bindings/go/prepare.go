package dtrain

// SPDX-License-Identifier: Apache-2.0

// Prepared operations: like the functions without Prepare in their names, but Request.Start starts
// them, as often as it is called. For the order of calls that all ranks keep, the start counts.
// Slices must be memory of Alloc or Register; they belong to the library from each start until the
// operation has finished.

// PrepareAllReduce prepares an AllReduce.
func PrepareAllReduce[T Element](comm *Comm, data []T, op Op) (*Request, error) {
	return comm.ready(allReduce(viewOf(data), viewOf(data), op))
}

// PrepareAllReduceTo prepares an AllReduceTo.
func PrepareAllReduceTo[T Element](comm *Comm, send, recv []T, op Op) (*Request, error) {
	return comm.ready(allReduce(viewOf(send), viewOf(recv), op))
}

// PrepareReduce prepares a Reduce.
func PrepareReduce[T Element](comm *Comm, send, recv []T, op Op, root int) (*Request, error) {
	return comm.ready(reduce(viewOf(send), viewOf(recv), op, root))
}

// PrepareReduceScatter prepares a ReduceScatter.
func PrepareReduceScatter[T Element](comm *Comm, send, recv []T, op Op) (*Request, error) {
	return comm.ready(reduceScatter(viewOf(send), viewOf(recv), op))
}

// PrepareReduceScatterV prepares a ReduceScatterV.
func PrepareReduceScatterV[T Element](comm *Comm, send, recv []T, counts []int, op Op) (*Request, error) {
	return comm.ready(reduceScatterV(viewOf(send), viewOf(recv), counts, op))
}

// PrepareAllGather prepares an AllGather.
func PrepareAllGather[T Element](comm *Comm, send, recv []T) (*Request, error) {
	return comm.ready(allGather(viewOf(send), viewOf(recv)))
}

// PrepareAllGatherV prepares an AllGatherV.
func PrepareAllGatherV[T Element](comm *Comm, send, recv []T, counts, displs []int) (*Request, error) {
	return comm.ready(allGatherV(viewOf(send), viewOf(recv), counts, displs))
}

// PrepareBroadcast prepares a Broadcast.
func PrepareBroadcast[T Element](comm *Comm, data []T, root int) (*Request, error) {
	return comm.ready(broadcast(viewOf(data), root))
}

// PrepareGather prepares a Gather.
func PrepareGather[T Element](comm *Comm, send, recv []T, root int) (*Request, error) {
	return comm.ready(gather(viewOf(send), viewOf(recv), root))
}

// PrepareGatherV prepares a GatherV.
func PrepareGatherV[T Element](comm *Comm, send, recv []T, counts, displs []int,
	root int) (*Request, error) {
	return comm.ready(gatherV(viewOf(send), viewOf(recv), counts, displs, root))
}

// PrepareScatter prepares a Scatter.
func PrepareScatter[T Element](comm *Comm, send, recv []T, root int) (*Request, error) {
	return comm.ready(scatter(viewOf(send), viewOf(recv), root))
}

// PrepareScatterV prepares a ScatterV.
func PrepareScatterV[T Element](comm *Comm, send, recv []T, counts, displs []int,
	root int) (*Request, error) {
	return comm.ready(scatterV(viewOf(send), viewOf(recv), counts, displs, root))
}

// PrepareAllToAll prepares an AllToAll.
func PrepareAllToAll[T Element](comm *Comm, send, recv []T) (*Request, error) {
	return comm.ready(allToAll(viewOf(send), viewOf(recv)))
}

// PrepareAllToAllV prepares an AllToAllV.
func PrepareAllToAllV[T Element](comm *Comm, send []T, sendCounts, sendDispls []int, recv []T,
	recvCounts, recvDispls []int) (*Request, error) {
	return comm.ready(allToAllV(viewOf(send), sendCounts, sendDispls, viewOf(recv), recvCounts, recvDispls))
}

// PrepareBarrier prepares a Barrier.
func PrepareBarrier(comm *Comm) (*Request, error) {
	return comm.ready(collective{kind: kindBarrier})
}

// PrepareSend prepares a Send.
func PrepareSend[T Element](comm *Comm, data []T, peer int, tag uint32) (*Request, error) {
	return comm.ready(message(kindSend, viewOf(data), peer, tag))
}

// PrepareRecv prepares a Recv.
func PrepareRecv[T Element](comm *Comm, data []T, peer int, tag uint32) (*Request, error) {
	return comm.ready(message(kindRecv, viewOf(data), peer, tag))
}
