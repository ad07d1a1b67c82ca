// SPDX-License-Identifier: Apache-2.0

package history

import (
	"slices"
	"time"
	"unsafe"

	"github.com/wasmctl/wasmctl/abi"
)

// maxDenials is the number of denials that are stored for each object.
const maxDenials = 4

// Denial is a request to the API server that a webhook of the module denied, or could not judge.
type Denial struct {
	// ID is the uid of the request, and User its sender.
	ID        string        `json:"id"`
	Time      time.Time     `json:"time"`
	User      string        `json:"user"`
	Operation abi.Operation `json:"operation"`
	// Subresource is empty for the object itself.
	Subresource string `json:"subresource,omitempty"`
	DryRun      bool   `json:"dryRun,omitempty"`
	// Webhook is the path of the webhook, and Revision that of the module that judged.
	Webhook  string `json:"webhook"`
	Revision uint64 `json:"revision,omitempty"`
	// Failed means that the module could not judge: the failure policy of the webhook decided.
	Failed bool `json:"failed,omitempty"`
	// Message is the reason that the module gave, or the error.
	Message string `json:"message"`
}

func (d *Denial) bytes() int {
	return int(unsafe.Sizeof(*d)) + len(d.ID) + len(d.User) + len(d.Operation) + len(d.Subresource) + len(d.Webhook) + len(d.Message)
}

// Deny records a denial of a request about an object of the reconciled kind.
func (r *Recorder) Deny(key abi.Key, d *Denial) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.denials.use(key)
	e.value = append(slices.Delete(slices.Clone(e.value), 0, max(0, len(e.value)+1-maxDenials)), *d)
	size := stateSize + len(key.Namespace) + len(key.Name)
	for i := range e.value {
		size += e.value[i].bytes()
	}
	r.denials.resize(e, size)
}

// Denials returns the last denials of requests about an object, the last one first.
func (r *Recorder) Denials(key abi.Key) (list []Denial) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.denials.get(key); known != nil {
		list = slices.Clone(*known)
		slices.Reverse(list)
	}
	return list
}
