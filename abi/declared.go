// SPDX-License-Identifier: Apache-2.0

package abi

import (
	"errors"
	"fmt"
)

// Empty reports whether d declares nothing: no children, no pruning and no status. A nil Declared is empty.
func (d *Declared) Empty() bool {
	return d == nil || len(d.Apply) == 0 && !d.Prune && d.Status == nil
}

// declaredKey reads one of the keys of Declared. It copies the values, because the message is in the guest's memory, which the next call
// overwrites.
func (r *reader) declaredKey(key string, d *Declared) (known bool, err error) {
	switch key {
	case keyApply:
		return r.list(func() error {
			return r.appendMap(&d.Apply)
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

var errDeclaredWithError = errors.New("apply, prune and force are not allowed in a result with an error: only status is")

// setDeclared sets Declared to d if d declares something.
func (res *Result) setDeclared(d *Declared) error {
	if res.Error != nil && (len(d.Apply) > 0 || d.Prune || d.Force) {
		return fmt.Errorf("%w: %w", ErrType, errDeclaredWithError)
	}
	if !d.Empty() {
		res.Declared = d
	}
	return nil
}
