package main

import (
	"fmt"
	"log/slog"
	"sync"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/runtime/watcher"
)

// identity is what requests are sent by: as the process itself, or as the user of
// --as. Watches are shared by controllers of one identity only, since what a
// watch brings is what its identity may see.
type identity struct {
	restConfig *rest.Config
	client     *kubeapi.Client
	dynamic    dynamic.Interface
	watches    *watcher.Set
}

// newIdentity sends nothing yet.
func newIdentity(config *rest.Config, log *slog.Logger) (*identity, error) {
	id := &identity{restConfig: config}
	var err error
	if id.client, err = kubeapi.NewClient(config); err != nil {
		return nil, err
	}
	if id.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return nil, err
	}
	watching, err := watcher.NewClient(config)
	if err != nil {
		return nil, err
	}
	id.watches = watcher.NewSet(watching, watcher.Config{Log: log})
	return id, nil
}

// identities are those of --as that controllers have asked for.
type identities struct {
	mu   sync.Mutex
	list map[string]*identity // by user; guarded by mu
}

// actAs returns the identity of a user, "" for the process itself.
func (p *process) actAs(user string) (*identity, error) {
	if user == "" {
		return p.identity, nil
	}
	p.others.mu.Lock()
	defer p.others.mu.Unlock()
	if id := p.others.list[user]; id != nil {
		return id, nil
	}
	config := rest.CopyConfig(p.restConfig)
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	id, err := newIdentity(config, p.log)
	if err != nil {
		return nil, withCode(exitCluster, fmt.Errorf("--as %s: %w", user, err))
	}
	if p.others.list == nil {
		p.others.list = map[string]*identity{}
	}
	p.others.list[user] = id
	return id, nil
}

// eachWatch calls yield with the state of each watch, of all identities.
func (p *process) eachWatch(yield func(watcher.Source, watcher.State)) {
	sets := []*watcher.Set{p.watches}
	p.others.mu.Lock()
	for _, id := range p.others.list {
		sets = append(sets, id.watches)
	}
	p.others.mu.Unlock()
	for _, set := range sets {
		for source, state := range set.States() {
			yield(source, state)
		}
	}
}
