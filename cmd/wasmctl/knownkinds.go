package main

import (
	"sync"

	"github.com/wasmctl/wasmctl/host/kubeapi"
)

// knownKinds are the kinds that a session has found before. It does not ask for
// them again: a module is taken back also while the API server is away. The zero
// value knows none.
type knownKinds struct {
	mu     sync.Mutex
	byName map[string]kubeapi.Kind // by what names them; guarded by mu
}

// get returns the kind that is known by a name, or finds and keeps it. No lock is
// held meanwhile.
func (k *knownKinds) get(name string, find func() (kubeapi.Kind, error)) (kubeapi.Kind, error) {
	k.mu.Lock()
	kind, ok := k.byName[name]
	k.mu.Unlock()
	if ok {
		return kind, nil
	}
	kind, err := find()
	if err != nil {
		return kind, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.byName == nil {
		k.byName = map[string]kubeapi.Kind{}
	}
	k.byName[name] = kind
	return kind, nil
}
