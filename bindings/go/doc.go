// SPDX-License-Identifier: Apache-2.0

// Package dtrain is all-reduce and a parameter server as a library: no launcher or daemon is needed,
// slices are not copied.
//
// A Context has the transports; a Comm is a group of ranks. Collectives on slices are functions, e.g.
// AllReduce; they block until they are done, or their context.Context ends them. Started and prepared
// operations (Start, Prepare) return a Request at once; they work on memory of Alloc or Register, since
// C must not keep the address of memory of Go's.
//
// Errors are *Error, with a Status for errors.Is. Everything has a Close, and Context.Close closes all.
package dtrain
