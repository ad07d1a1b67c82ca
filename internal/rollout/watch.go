// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/host/load"
	"github.com/wasmctl/wasmctl/internal/plan"
	"github.com/wasmctl/wasmctl/runtime/controller"
	"github.com/wasmctl/wasmctl/runtime/queue"
	"github.com/wasmctl/wasmctl/runtime/queue/predicate"
	"github.com/wasmctl/wasmctl/runtime/reflector"
)

// Code describes the binary of a module or a candidate.
type Code interface {
	Info() *load.Info
	HasHook(name string) bool
}

// CheckPredicates returns an error if a predicate cannot be parsed, or if one calls the
// module's filter and the module does not export it.
func CheckPredicates(c Code, kind plan.Watched, related ...plan.Watched) error {
	for _, k := range append([]plan.Watched{kind}, related...) {
		filter, err := predicate.Parse(k.Watch.Predicates, predicate.Options{})
		if err != nil {
			return fmt.Errorf("watch[%s]: predicates: %w", k.Name(), err)
		}
		if filter.Asks() && !c.HasHook(abi.ExportFilter) {
			return fmt.Errorf("watch[%s]: predicates: func needs the module's filter, which the module does not export", k.Name())
		}
	}
	return nil
}

// wanted is a watch that a revision needs.
type wanted struct {
	id    string
	watch controller.Watch
}

// wants returns the watches of a plan for a module or candidate.
func (r *Rollout) wants(p *plan.Plan, c Code) ([]wanted, error) {
	out := make([]wanted, len(p.Related))
	for i, k := range p.Related {
		var err error
		if out[i], err = r.want(k, c); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (r *Rollout) want(k plan.Watched, c Code) (wanted, error) {
	w, err := RelatedWatch(r.cfg.Kind, k, c, r.cfg.API, r.log)
	return wanted{fmt.Sprint(k.ID(), w.MetadataOnly), w}, err
}

// RelatedWatch returns the watch of a kind that is owned by the reconciled kind or mapped
// to it. If Map is nil, the guest maps its events.
func RelatedWatch(of, k plan.Watched, c Code, api *kubeapi.API, log *slog.Logger) (controller.Watch, error) {
	w := WatchOf(k, c)
	var err error
	w.Map, err = queue.ParseMap(k.Watch.Map, queue.Relation{
		Group: of.Group, Kind: of.Kind.Kind, ClusterScoped: !of.Namespaced,
		Resource: k.GVR().GroupResource().String(), WatchedClusterScoped: !k.Namespaced, ControllerOnly: k.Watch.ControllerOnly,
		Waiting: func(child reflector.ObjectRef) []reflector.ObjectRef {
			return api.Released(k.GVR().GroupResource(), child)
		},
		OnInvalid: func(object reflector.ObjectRef, key, value string, err error) {
			log.Warn("a watched object does not name an object to reconcile", "watch", k.Name(), "object", object.String(),
				"key", key, "value", value, "error", err.Error())
		},
	})
	return w, err
}

// WatchOf returns the watch of a kind.
func WatchOf(k plan.Watched, c Code) controller.Watch {
	return controller.Watch{
		Kind: k.GVK(), Resource: k.GVR(), ClusterScoped: !k.Namespaced, Namespaces: k.Watch.Namespaces,
		LabelSelector: k.Watch.LabelSelector, FieldSelector: k.Watch.FieldSelector,
		MetadataOnly: k.Watch.MetadataOnly || k.Owned && !readsCache(c),
		Optional:     k.Watch.Optional, Owned: k.Owned, Predicates: k.Watch.Predicates,
	}
}

// readsCache reports whether the module can read the cache, or is shown objects of other
// kinds. Otherwise only the metadata of an owned object is needed.
func readsCache(c Code) bool {
	info := c.Info()
	return info.CanCall(abi.OpCacheGet) || info.CanCall(abi.OpCacheList) || c.HasHook(abi.ExportFilter) || c.HasHook(abi.ExportMap)
}

// candidateHooks calls a candidate until it is replaced, and then the live revision,
// because a watch that was added for one revision may continue for later ones.
type candidateHooks struct {
	candidate *host.Candidate
	module    *host.Module
}

// Map implements queue.Module.
func (h candidateHooks) Map(ctx context.Context, ev *abi.Event) ([]abi.Key, error) {
	keys, err := h.candidate.Map(ctx, ev)
	if errors.Is(err, host.ErrClosed) {
		return h.module.Map(ctx, ev)
	}
	return keys, err
}

// Filter implements queue.Module.
func (h candidateHooks) Filter(ctx context.Context, ev *abi.Event) (bool, error) {
	keep, err := h.candidate.Filter(ctx, ev)
	if errors.Is(err, host.ErrClosed) {
		return h.module.Filter(ctx, ev)
	}
	return keep, err
}
