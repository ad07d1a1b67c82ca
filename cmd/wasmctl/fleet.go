// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/serve"
	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/runtime/admin"
	"github.com/wasmctl/wasmctl/runtime/history"
	"github.com/wasmctl/wasmctl/runtime/shard"
)

// podPrefix begins the name of a member that is a pod.
const podPrefix = "pod "

// member is a process that a command can talk to. Its name describes it for people.
type member struct {
	name   string
	client *admin.Client
	status admin.Status
}

// leads reports whether the member is the leader of an election.
func (m *member) leads() bool { return m.status.Leader != nil && *m.status.Leader }

// fleet is the processes that a command can talk to: one on this machine, or those in the pods of a
// namespace. It is never empty.
type fleet []member

// names returns the names of all controllers, each once.
func (f fleet) names() (names []string) {
	for i := range f {
		for _, name := range namesOf(&f[i].status) {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// controllers returns the controllers of the members that run them. It is pure.
func (f fleet) controllers() (list []admin.Controller) {
	for _, name := range f.names() {
		for _, m := range f.runners(name) {
			at := slices.IndexFunc(m.status.Controllers, func(c admin.Controller) bool { return c.Name == name })
			list = append(list, m.status.Controllers[at])
		}
	}
	return list
}

// runners returns the members that can do something for a controller: those that have it, or of these the
// leader. It is pure.
func (f fleet) runners(controller string) (found fleet) {
	for i := range f {
		if slices.ContainsFunc(f[i].status.Controllers, func(c admin.Controller) bool { return c.Name == controller }) {
			found = append(found, f[i])
		}
	}
	if i := slices.IndexFunc(found, func(m member) bool { return m.leads() }); i >= 0 {
		return found[i : i+1]
	}
	return found
}

// of returns a client of the process that runs a controller, for these objects if there are any.
func (f fleet) of(ctx context.Context, controller string, objects []abi.Key) (*admin.Client, error) {
	found := f.runners(controller)
	switch {
	case len(f) == 1:
		return f[0].client, nil
	case len(found) == 0:
		return nil, f.failed(ctx, controller, fmt.Errorf("controller[%s]: %w", controller, admin.ErrUnknown))
	case len(found) == 1:
		return found[0].client, nil
	case len(objects) == 0:
		return nil, found.choose("controller[" + controller + "]: runs on")
	}
	replica, err := found.replicaOf(ctx, controller, objects)
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(found, func(m member) bool { return m.status.Shards != nil && m.status.Shards.Replica == replica }); i >= 0 {
		return found[i].client, nil
	}
	return found[0].client, nil // it refuses, and names the replica
}

// steered is like of, but if no objects are named and replicas share those of the controller, any of them passes a command on to all.
func (f fleet) steered(ctx context.Context, controller string, objects []abi.Key) (*admin.Client, error) {
	if len(objects) > 0 {
		return f.of(ctx, controller, objects)
	}
	members, err := f.each(ctx, controller)
	if err != nil {
		return nil, err
	}
	return members[0].client, nil
}

// share reports whether the members are replicas of one group that share the objects of a controller.
func (f fleet) share(controller string) bool {
	for i := range f {
		sh := f[i].status.Shards
		if sh == nil || sh.By[controller] == "" || !slices.ContainsFunc(f[0].status.Shards.Replicas, func(r admin.Replica) bool { return r.ID == sh.Replica }) {
			return false
		}
	}
	return len(f) > 0
}

// each returns the members at which a command changes the module of a controller: all that share its objects, or the one that runs it.
func (f fleet) each(ctx context.Context, controller string) (fleet, error) {
	found := f.runners(controller)
	if len(found) > 1 && found.share(controller) {
		return found, nil
	}
	c, err := f.of(ctx, controller, nil)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(f, func(m member) bool { return m.client == c })
	return f[i : i+1], nil
}

// differing returns the IDs of the replicas of a group that run other modules of a controller than the members.
func (f fleet) differing(ctx context.Context, controller string) (ids []string) {
	st, err := f[0].client.Status(ctx)
	if err != nil || st.Shards == nil {
		return nil
	}
	at := slices.IndexFunc(st.Controllers, func(c admin.Controller) bool { return c.Name == controller })
	if at < 0 {
		return nil
	}
	for i := range st.Shards.Modules {
		m := &st.Shards.Modules[i]
		if m.Controller != controller || strings.Contains(st.Controllers[at].Digest, m.Digest) {
			continue
		}
		for _, r := range m.Replicas {
			if !slices.ContainsFunc(f, func(m member) bool { return m.status.Shards != nil && m.status.Shards.Replica == r.ID }) {
				ids = append(ids, r.ID)
			}
		}
	}
	return ids
}

// replicaOf returns the ID of the replica that runs the objects of a controller.
func (f fleet) replicaOf(ctx context.Context, controller string, objects []abi.Key) (replica string, err error) {
	for i, key := range objects {
		list, err := f[0].client.Explain(ctx, admin.Question{Controller: controller, Object: key})
		if err != nil {
			return "", f.failed(ctx, controller, err)
		}
		at := ""
		for _, e := range list {
			if e.Slot != nil && len(e.Slot.Replicas) > 0 {
				at = e.Slot.Replicas[0]
			}
		}
		if i > 0 && at != replica {
			return "", failure.Usage.Wrap(errors.New("several replicas run these objects: name the objects of one at a time"))
		}
		replica = at
	}
	return replica, nil
}

// only returns the only member, or the leader.
func (f fleet) only() (*member, error) {
	if len(f) == 1 {
		return &f[0], nil
	}
	if i := slices.IndexFunc(f, func(m member) bool { return m.leads() }); i >= 0 {
		return &f[i], nil
	}
	return nil, f.choose("wasmctl runs in")
}

// choose returns an error that asks for one of several pods.
func (f fleet) choose(what string) error {
	return failure.Usage.Wrap(fmt.Errorf("%s several pods: choose one with --pod: %s", what, strings.Join(f.pods(), ", ")))
}

// pods returns the names of the pods.
func (f fleet) pods() []string {
	names := make([]string, len(f))
	for i := range f {
		names[i] = strings.TrimPrefix(f[i].name, podPrefix)
	}
	return names
}

// explain asks all members that can answer, the possible meanings of the arguments one after the other.
func (f fleet) explain(ctx context.Context, questions []admin.Question) ([]admin.Explanation, error) {
	var all []admin.Explanation
	var failed error
	for i := range f {
		list, err := ask(ctx, f[i].client, questions)
		if err != nil {
			failed = cmp.Or(failed, err)
			continue
		}
		all = append(all, list...)
	}
	controller := cmp.Or(questions[0].Controller, questions[0].Kind) // the first argument may be either
	switch {
	case len(all) == 0 && errors.Is(failed, failure.Usage):
		return nil, f.hint(ctx, controller, failed)
	case len(all) == 0:
		return nil, f.failed(ctx, controller, failed)
	}
	return merge(all), nil
}

// merge returns one explanation for each controller and object: that of the replica that runs the object, if
// there is one, with the denials of all replicas. Those of controllers that know the object come first. It is pure.
func merge(all []admin.Explanation) (out []admin.Explanation) {
	for i := range all {
		e := &all[i]
		at := slices.IndexFunc(out, func(o admin.Explanation) bool { return o.Controller == e.Controller && o.Object == e.Object })
		if at < 0 {
			out = append(out, *e)
			continue
		}
		denials := append(slices.Clip(out[at].Denials), e.Denials...)
		slices.SortStableFunc(denials, func(a, b history.Denial) int { return b.Time.Compare(a.Time) })
		if !runsHere(&out[at]) && runsHere(e) {
			out[at] = *e
		}
		out[at].Denials = denials
	}
	slices.SortStableFunc(out, func(a, b admin.Explanation) int {
		return cmp.Compare(map[bool]int{false: 1}[a.Known()], map[bool]int{false: 1}[b.Known()])
	})
	return out
}

// runsHere reports whether the replica that has explained an object runs it.
func runsHere(e *admin.Explanation) bool {
	return e.State != admin.StateStandby && (e.Slot == nil || e.Slot.State == string(shard.Here))
}

// failed explains an error of a member about a controller, whose name may be empty: an unknown controller may
// be that of another replica.
func (f fleet) failed(ctx context.Context, controller string, err error) error {
	if errors.Is(err, admin.ErrUnknown) {
		return failure.Usage.Wrap(f.hint(ctx, controller, runsThese(err, f.names())))
	}
	return err
}

// hint adds to an error which other replica may run a controller.
func (f fleet) hint(ctx context.Context, controller string, err error) error {
	if where := f.elsewhere(ctx, controller); where != "" {
		return fmt.Errorf("%w; %s; to ask all replicas, use --in NAMESPACE", err, where)
	}
	return err
}

// elsewhere describes which other replica may run a controller. It is empty if none can.
func (f fleet) elsewhere(ctx context.Context, controller string) string {
	st := &f[0].status
	switch {
	case len(f) > 1:
	case st.Shards != nil && st.Shards.By[serve.NativeName(v1alpha1.KindNamespaced)] != "": // each Reconciler runs on one replica
		if replica := f.replicaOfReconciler(ctx, controller); replica != "" {
			return "replica " + replica + " runs it"
		}
		return fmt.Sprintf("this replica runs %d of %d slots", st.Shards.Here, st.Shards.Slots)
	case st.Leader != nil && !*st.Leader:
		return "this replica does not lead, but " + cmp.Or(st.LeaderID, "another one") + " does"
	}
	return ""
}

// replicaOfReconciler returns the ID of the replica that runs the Reconciler whose controller has this name,
// or "" if that is unknown.
func (f fleet) replicaOfReconciler(ctx context.Context, controller string) string {
	kind, key := v1alpha1.KindCluster, abi.Key{Name: controller}
	if namespace, name, ok := strings.Cut(controller, "."); ok {
		kind, key = v1alpha1.KindNamespaced, abi.Key{Namespace: namespace, Name: name}
	}
	list, err := f[0].client.Explain(ctx, admin.Question{Kind: kind + "." + v1alpha1.Group, Object: key})
	if err != nil || len(list) != 1 || list[0].Slot == nil || list[0].Slot.State != string(shard.Elsewhere) {
		return ""
	}
	return strings.Join(list[0].Slot.Replicas, " and ")
}
