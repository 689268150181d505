package dtrain

// SPDX-License-Identifier: Apache-2.0

// Started operations: like the functions without Start in their names, but they return at once. Slices must
// be memory of Alloc or Register; they belong to the library until the operation has finished.
//
//	memory, err := dtrain.Alloc[float32](job, 1000)
//	request, err := dtrain.StartAllReduce(world, memory.Data, dtrain.Sum)
//	result, err := request.Wait(ctx)

// StartAllReduce starts an AllReduce.
func StartAllReduce[T Element](comm *Comm, data []T, op Op) (*Request, error) {
	return comm.start(allReduce(viewOf(data), viewOf(data), op))
}

// StartAllReduceTo starts an AllReduceTo.
func StartAllReduceTo[T Element](comm *Comm, send, recv []T, op Op) (*Request, error) {
	return comm.start(allReduce(viewOf(send), viewOf(recv), op))
}

// StartReduce starts a Reduce.
func StartReduce[T Element](comm *Comm, send, recv []T, op Op, root int) (*Request, error) {
	return comm.start(reduce(viewOf(send), viewOf(recv), op, root))
}

// StartReduceScatter starts a ReduceScatter.
func StartReduceScatter[T Element](comm *Comm, send, recv []T, op Op) (*Request, error) {
	return comm.start(reduceScatter(viewOf(send), viewOf(recv), op))
}

// StartReduceScatterV starts a ReduceScatterV.
func StartReduceScatterV[T Element](comm *Comm, send, recv []T, counts []int, op Op) (*Request, error) {
	return comm.start(reduceScatterV(viewOf(send), viewOf(recv), counts, op))
}

// StartAllGather starts an AllGather.
func StartAllGather[T Element](comm *Comm, send, recv []T) (*Request, error) {
	return comm.start(allGather(viewOf(send), viewOf(recv)))
}

// StartAllGatherV starts an AllGatherV.
func StartAllGatherV[T Element](comm *Comm, send, recv []T, counts, displs []int) (*Request, error) {
	return comm.start(allGatherV(viewOf(send), viewOf(recv), counts, displs))
}

// StartBroadcast starts a Broadcast.
func StartBroadcast[T Element](comm *Comm, data []T, root int) (*Request, error) {
	return comm.start(broadcast(viewOf(data), root))
}

// StartGather starts a Gather.
func StartGather[T Element](comm *Comm, send, recv []T, root int) (*Request, error) {
	return comm.start(gather(viewOf(send), viewOf(recv), root))
}

// StartGatherV starts a GatherV.
func StartGatherV[T Element](comm *Comm, send, recv []T, counts, displs []int, root int) (*Request, error) {
	return comm.start(gatherV(viewOf(send), viewOf(recv), counts, displs, root))
}

// StartScatter starts a Scatter.
func StartScatter[T Element](comm *Comm, send, recv []T, root int) (*Request, error) {
	return comm.start(scatter(viewOf(send), viewOf(recv), root))
}

// StartScatterV starts a ScatterV.
func StartScatterV[T Element](comm *Comm, send, recv []T, counts, displs []int,
	root int) (*Request, error) {
	return comm.start(scatterV(viewOf(send), viewOf(recv), counts, displs, root))
}

// StartAllToAll starts an AllToAll.
func StartAllToAll[T Element](comm *Comm, send, recv []T) (*Request, error) {
	return comm.start(allToAll(viewOf(send), viewOf(recv)))
}

// StartAllToAllV starts an AllToAllV.
func StartAllToAllV[T Element](comm *Comm, send []T, sendCounts, sendDispls []int, recv []T,
	recvCounts, recvDispls []int) (*Request, error) {
	return comm.start(allToAllV(viewOf(send), sendCounts, sendDispls, viewOf(recv), recvCounts, recvDispls))
}

// StartBarrier starts a Barrier.
func StartBarrier(comm *Comm) (*Request, error) {
	return comm.start(collective{kind: kindBarrier})
}

// StartSend starts a Send.
func StartSend[T Element](comm *Comm, data []T, peer int, tag uint32) (*Request, error) {
	return comm.start(message(kindSend, viewOf(data), peer, tag))
}

// StartRecv starts a Recv.
func StartRecv[T Element](comm *Comm, data []T, peer int, tag uint32) (*Request, error) {
	return comm.start(message(kindRecv, viewOf(data), peer, tag))
}
