// SPDX-License-Identifier: Apache-2.0

package abi

// The guest's side of the encoding, which the host does not need.

func AppendFailure(dst []byte, f *Failure) []byte {
	return append(AppendFailureHead(dst, f), f.Object...)
}

func AppendEvent(dst []byte, e *Event) []byte {
	head, split := AppendEventHead(dst, e)
	rest := string(head[split:])
	return append(append(append(head[:split], e.Old...), rest...), e.New...)
}

func AppendResult(dst []byte, r *Result) []byte {
	d := r.Declared
	if d == nil {
		d = &Declared{}
	}
	n := 1 + count(len(d.Apply) > 0) + count(d.Prune) + count(d.Force) + count(d.Status != nil)
	switch {
	case r.Error != nil:
		dst = appendError(appendString(AppendMapHead(dst, n), keyError), r.Error)
	case r.Action.Requeue:
		dst = appendString(appendString(AppendMapHead(dst, n+1), keyAction), actionRequeue)
		dst = AppendInt(appendString(dst, keyAfterMS), r.Action.After.Milliseconds())
	default:
		dst = appendString(appendString(AppendMapHead(dst, n), keyAction), actionAwait)
	}
	if len(d.Apply) > 0 {
		dst = AppendArrayHead(appendString(dst, keyApply), len(d.Apply))
		for _, child := range d.Apply {
			dst = append(dst, child...)
		}
	}
	if d.Prune {
		dst = appendBool(appendString(dst, keyPrune), true)
	}
	if d.Force {
		dst = appendBool(appendString(dst, keyForce), true)
	}
	if d.Status != nil {
		dst = append(appendString(dst, keyStatus), d.Status...)
	}
	return dst
}

func AppendMapResult(dst []byte, res *MapResult) []byte {
	if res.Error != nil {
		return appendError(appendString(AppendMapHead(dst, 1), keyError), res.Error)
	}
	dst = AppendArrayHead(appendString(AppendMapHead(dst, 1), keyKeys), len(res.Keys))
	for _, k := range res.Keys {
		dst = appendKey(dst, k)
	}
	return dst
}

func UnpackResult(v uint64) (s Status, length uint32) {
	return Status(int32(uint32(v >> 32))), uint32(v)
}

func PackPointer(ptr, length uint32) uint64 { return uint64(ptr)<<32 | uint64(length) }
