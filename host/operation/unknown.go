// SPDX-License-Identifier: Apache-2.0

package operation

import (
	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/text"
)

const (
	// maxUnknown is how many unknown keys are shown.
	maxUnknown = 10
	// maxWords bounds a name or a reason of a guest, in bytes.
	maxWords = 2 << 10
)

// HideSecrets removes the values of Secrets from the texts of a result that people see.
// Declared objects go to the cluster and stay unchanged. Long texts are shortened.
func (e *Env) HideSecrets(res *abi.Result) {
	e.HideInError(res.Error)
	for i, key := range res.Unknown[:min(len(res.Unknown), maxUnknown)] {
		res.Unknown[i] = text.Ends(e.Secrets.Text(key), maxWords)
	}
}

// HideInError is HideSecrets for an error, which may be nil.
func (e *Env) HideInError(err *abi.ResultError) {
	if err != nil {
		err.Message, err.Reason = text.Ends(e.Secrets.Text(err.Message), text.MaxError), text.Ends(e.Secrets.Text(err.Reason), maxWords)
	}
}

// CountUnknown counts the keys of a result that this host does not know, and reports the
// first ones.
func (e *Env) CountUnknown(fn string, keys []string) {
	if len(keys) == 0 {
		return
	}
	e.Module.UnknownKeys.Add(uint64(len(keys)))
	e.Module.warnUnknown.Do(func() {
		e.Log.Warn("ignoring unknown keys in the result; not reported again", "func", fn, "keys", keys[:min(len(keys), maxUnknown)])
	})
}
