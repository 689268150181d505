package dtrain

// SPDX-License-Identifier: Apache-2.0

import (
	"errors"
	"io"
	"sync"
	"unsafe"

	"dtrain.org/dtrain/internal/capi"
)

// Reader reads the records of TFRecord files. Only one goroutine may use it at a time.
type Reader struct {
	handle
	record []byte
}

// ReaderParams has a reader's share of the records, and its limit; zero means the default.
type ReaderParams struct {
	Shard, Shards int
	MaxRecord     uint64 // longest accepted record, bytes
}

// OpenReader opens files, to be read in this order.
func OpenReader(paths []string, params ReaderParams) (*Reader, error) {
	for _, path := range paths {
		if err := whole("the path", path); err != nil {
			return nil, err
		}
	}
	p := capi.NewReader_params()
	defer capi.DeleteReader_params(p)
	p.SetShard(int32(clamp(params.Shard)))
	p.SetShards(int32(clamp(params.Shards)))
	p.SetMax_record(params.MaxRecord)
	texts := make([]uintptr, len(paths))
	for i, path := range paths {
		texts[i] = capi.CString(path)
		defer capi.Free(texts[i])
	}
	list := capi.CArray(start(texts), 8*len(texts))
	defer capi.Free(list)
	r := new(Reader)
	r.of(&object{what: "reader", tree: new(sync.Mutex)})
	r.object.destroy = func(handle uintptr) *capi.Failure { capi.Reader_close(handle); return nil }
	if failure := capi.Reader_open(list, uint32(len(paths)), p.Swigcptr(),
		unsafe.Pointer(&r.object.handle)); failure != nil {
		return nil, makeError(failure)
	}
	return r, nil
}

// Next returns the next record, valid until the following call; io.EOF at the end.
func (r *Reader) Next() ([]byte, error) {
	handle, err := r.enter()
	if err != nil {
		return nil, err
	}
	defer r.object.leave()
	var data uintptr
	var length uint64
	err = errorOf(capi.Reader_next(handle, unsafe.Pointer(&data), unsafe.Pointer(&length)))
	if errors.Is(err, ErrNotFound) {
		return nil, io.EOF
	}
	if err != nil {
		return nil, err
	}
	r.record = append(r.record[:0], unsafe.Slice((*byte)(capi.Memory(data)), int(length))...)
	return r.record, nil
}

// Rewind goes back to the start.
func (r *Reader) Rewind() error { return r.call(capi.Reader_rewind) }

// Close closes the files.
func (r *Reader) Close() error { return r.close() }

// Writer writes a TFRecord file, which appears under its name when it is closed.
type Writer struct {
	handle
	err error // error of the close
}

// OpenWriter creates a file.
func OpenWriter(path string) (*Writer, error) {
	if err := whole("the path", path); err != nil {
		return nil, err
	}
	w := new(Writer)
	w.of(&object{what: "writer", tree: new(sync.Mutex)})
	w.object.destroy = func(handle uintptr) *capi.Failure {
		w.err = errorOf(capi.Writer_close(handle)) // frees the handle in any case
		return nil
	}
	if failure := capi.Writer_open(path, unsafe.Pointer(&w.object.handle)); failure != nil {
		return nil, makeError(failure)
	}
	return w, nil
}

// Append writes a record.
func (w *Writer) Append(record []byte) error {
	if err := onHost(viewOf(record), "record"); err != nil {
		return err
	}
	return w.call(func(handle uintptr) *capi.Failure {
		return capi.Writer_append(handle, start(record), uint64(len(record)))
	})
}

// Close ends the file; an error means that the file was not written.
func (w *Writer) Close() error { return first(w.close(), w.err) }
