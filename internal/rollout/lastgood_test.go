// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"errors"
	"fmt"
	"testing"

	"github.com/wasmctl/wasmctl/runtime/applier"
	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// TestLastGood_DoubtIsOfTheLastRun: an object is in doubt until a run of it succeeds, after
// a run that failed or was interrupted, and after a run of a revision that was rolled back.
func TestLastGood_DoubtIsOfTheLastRun(t *testing.T) {
	l := lastGood{on: true}
	object, err := reflector.Pack(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "namespace": "b", "uid": "u"}}, reflector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := func(what string, doubt bool) {
		t.Helper()
		if l.inDoubt(object) != doubt {
			t.Errorf("%s: in doubt %v", what, !doubt)
		}
	}
	end := func(revision uint64, err error) {
		l.end(&applier.Outcome{Key: object.Ref(), Revision: revision, Err: err})
	}
	want("never ran", true)
	end(1, nil)
	want("ran", false)
	end(1, errors.New("no"))
	want("failed", true)
	end(2, nil)
	end(2, fmt.Errorf("%w", applier.ErrInterrupted))
	want("interrupted", true)
	end(3, nil)
	l.distrust(2)
	want("another is not believed", false)
	l.distrust(3)
	want("its revision is not believed", true)
	end(4, nil)
	end(0, applier.ErrObjectNotFound)
	if len(l.byKey) != 0 {
		t.Error("what is gone is remembered")
	}
	off := lastGood{}
	off.end(&applier.Outcome{Key: object.Ref(), Revision: 1})
	if off.byKey != nil {
		t.Error("it keeps what nobody asks for")
	}
}
