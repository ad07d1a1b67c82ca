package abi

import (
	"errors"
	"fmt"
)

// Empty reports whether d asks for nothing: no children, no pruning and no
// status. A nil Declared is empty.
func (d *Declared) Empty() bool {
	return d == nil || len(d.Apply) == 0 && !d.Prune && d.Status == nil
}

// fields is how many keys appendDeclared writes.
func (d *Declared) fields() int {
	if d == nil {
		return 0
	}
	return count(len(d.Apply) > 0) + count(d.Prune) + count(d.Force) + count(d.Status != nil)
}

func appendDeclared(dst []byte, d *Declared) []byte {
	if d == nil {
		return dst
	}
	if len(d.Apply) > 0 {
		dst = appendArrayHead(appendString(dst, keyApply), len(d.Apply))
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

// declaredKey reads one of the keys of Declared. What it keeps are copies: the
// message lies in the guest's memory, which the next call overwrites.
func (r *reader) declaredKey(key string, d *Declared) (known bool, err error) {
	switch key {
	case keyApply:
		return r.list(func() error {
			var child []byte
			if _, err := r.copied(&child, 2); err != nil {
				return err
			}
			if child == nil {
				return fmt.Errorf("%w: want a map", ErrType)
			}
			d.Apply = append(d.Apply, child)
			return nil
		})
	case keyPrune:
		return r.flag(&d.Prune)
	case keyForce:
		return r.flag(&d.Force)
	case keyStatus:
		return r.copied(&d.Status, 1)
	}
	return false, nil
}

var errDeclaredWithError = errors.New("apply, prune and force cannot stand beside an error: only status can")

// setDeclared sets Declared to d where that asks for something.
func (res *Result) setDeclared(d *Declared) error {
	if res.Error != nil && (len(d.Apply) > 0 || d.Prune || d.Force) {
		return fmt.Errorf("%w: %w", ErrType, errDeclaredWithError)
	}
	if !d.Empty() {
		res.Declared = d
	}
	return nil
}
