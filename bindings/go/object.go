package dtrain

// SPDX-License-Identifier: Apache-2.0

import (
	"sync"
	"sync/atomic"

	"dtrain.org/dtrain/internal/capi"
)

// object is a handle of the C API, usable until it is closed, and the objects that were made from
// it.
type object struct {
	what    string
	handle  uintptr
	users   int64 // calls that are using it now, plus `closing` once it is closed
	destroy func(handle uintptr) *capi.Failure
	tree    *sync.Mutex // guards parent and children of all objects of one context
	parent  *object
	// Objects that are closed with it, the newest first, memory last: operations may be using it.
	children []*object
	isMemory bool
}

const closing = -1 << 40

// enter keeps the object open until leave.
func (o *object) enter() (uintptr, error) {
	if atomic.AddInt64(&o.users, 1) < 0 {
		o.leave()
		return 0, errorf(ErrState, "this %s is closed", o.what)
	}
	return o.handle, nil
}

func (o *object) leave() { atomic.AddInt64(&o.users, -1) }

func (o *object) closed() bool { return atomic.LoadInt64(&o.users) < 0 }

// make runs a C call that makes an object from this one.
func (o *object) make(what string, destroy func(uintptr) *capi.Failure,
	create func(handle uintptr, made *uintptr) error) (*object, error) {
	handle, err := o.enter()
	if err != nil {
		return nil, err
	}
	defer o.leave()
	made := &object{what: what, destroy: destroy, tree: o.tree, parent: o}
	if err := create(handle, &made.handle); err != nil {
		return nil, err
	}
	if made.handle == 0 { // not for this rank
		return nil, nil
	}
	o.tree.Lock()
	defer o.tree.Unlock()
	o.children = append(o.children, made)
	return made, nil
}

// close closes the object and those that were made from it; closing again is no error.
func (o *object) close() error {
	o.tree.Lock()
	defer o.tree.Unlock()
	return o.end()
}

func (o *object) end() error {
	if o.closed() {
		return nil
	}
	for _, memory := range []bool{false, true} {
		for i := len(o.children) - 1; i >= 0; i-- {
			if o.children[i].isMemory != memory {
				continue
			}
			if err := o.children[i].end(); err != nil {
				return err
			}
		}
	}
	if !atomic.CompareAndSwapInt64(&o.users, 0, closing) {
		return errorf(ErrBusy, "this %s cannot be closed: another goroutine is in a call of it", o.what)
	}
	if failure := o.destroy(o.handle); failure != nil {
		atomic.AddInt64(&o.users, -closing) // other calls may have entered and left meanwhile
		return makeError(failure)
	}
	if o.parent != nil {
		o.parent.drop(o)
	}
	return nil
}

func (o *object) drop(child *object) {
	for i, other := range o.children {
		if other == child {
			o.children = append(o.children[:i], o.children[i+1:]...)
			return
		}
	}
}
