// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/runtime/watcher"
)

// Times of reviews. A watch is authorized only when it begins, and lasts up to ten minutes.
// Therefore the right of each watch is reviewed while it lasts.
const (
	reviewEvery = 10 * time.Second
	// reviewGap is the minimum time between two reviews of the process. It is reached by 1000
	// rights; with more, the time between the reviews of one grows.
	reviewGap = 10 * time.Millisecond
	// mostDoubt is the maximum number of rounds without a review of a right that reviews deny
	// and the API server grants, as an authorizer does that considers selectors.
	mostDoubt = 63
)

// right is the right to list the objects of watches.
type right struct {
	resource        schema.GroupVersionResource
	namespace, name string
}

// rightOf returns the right that a watch needs.
func rightOf(s watcher.Source) right {
	r := right{resource: s.Resource, namespace: s.Namespace}
	if selector, err := fields.ParseSelector(s.FieldSelector); err == nil {
		r.name, _ = selector.RequiresExactMatch("metadata.name")
	}
	return r
}

// access returns the right as package kubeapi reviews it.
func (r right) access() kubeapi.Access {
	a := kubeapi.Access{Group: r.resource.Group, Resource: r.resource.Resource, Verbs: []string{kubeapi.VerbList}}
	if r.namespace != "" {
		a.Namespaces = []string{r.namespace}
	}
	if r.name != "" {
		a.Names = []string{r.name}
	}
	return a
}

// review is a right of an identity.
type review struct {
	identityKey
	right
}

// uses are rights in use, by identity, with the time since which the watches of the right are in
// their phase; of several watches, the last one counts.
type uses map[identityKey]map[right]time.Time

// inTurns returns all rights in an order in which the identities take turns, so that one with
// many rights delays only itself.
func (u uses) inTurns() (list []review) {
	rights := map[identityKey][]right{}
	for key, since := range u {
		rights[key] = slices.Collect(maps.Keys(since))
	}
	for i, more := 0, true; more; i++ {
		more = false
		for key, rights := range rights {
			if i < len(rights) {
				list, more = append(list, review{key, rights[i]}), true
			}
		}
	}
	return list
}

// doubt is that of a right that a review has denied and the API server grants. length is the
// number of rounds that leave out the right after the denial, and left the number of those to come.
type doubt struct {
	length, left int
	since        time.Time // when the review denied the right
}

// reviewer is the state of Identities.Run.
type reviewer struct {
	*Identities

	doubts map[review]doubt     // of rights in use
	early  map[identityKey]bool // identities that were reviewed early in this round
}

// Run reviews the rights of the watches in use until ctx ends: every ten seconds, and those of
// an identity at once when the API server refuses one of its requests. If a right was taken
// back, the watch lists again, so that the API server denies it. A denied watch is not
// reviewed: its own attempts find out when the right is back.
func (ids *Identities) Run(ctx context.Context) {
	newReviewer(ids).run(ctx)
}

func newReviewer(ids *Identities) *reviewer {
	return &reviewer{Identities: ids, doubts: map[review]doubt{}}
}

func (r *reviewer) run(ctx context.Context) {
	for ctx.Err() == nil {
		end := time.Now().Add(reviewEvery)
		r.early = map[identityKey]bool{}
		used := r.inUse()
		r.resolve(used)
		for _, v := range used.inTurns() {
			if d := r.doubts[v]; d.left > 0 {
				d.left--
				r.doubts[v] = d
				continue
			}
			r.review(ctx, v)
			r.pause(ctx, reviewGap)
		}
		r.pause(ctx, time.Until(end))
	}
}

// resolve ends the doubt about a right that is not in use, or whose watch has changed its phase
// since the review: the API server has denied it too, even if it grants it again.
func (r *reviewer) resolve(used uses) {
	maps.DeleteFunc(r.doubts, func(v review, d doubt) bool {
		since, ok := used[v.identityKey][v.right]
		return !ok || since.After(d.since)
	})
}

// pause waits. Meanwhile it reviews identities whose requests are refused.
func (r *reviewer) pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		case key := <-r.refused:
			if r.early[key] {
				continue
			}
			r.early[key] = true
			for right := range r.inUse()[key] {
				r.review(ctx, review{key, right})
			}
		}
	}
}

// review asks for one right. After a denial, its watches list again, and the next rounds leave
// out the right: twice as many as after the previous denial.
func (r *reviewer) review(ctx context.Context, v review) {
	id := r.get(v.identityKey)
	if id == nil {
		return
	}
	if len(id.Client.CheckAccess(ctx, v.access())) == 0 {
		delete(r.doubts, v)
		return
	}
	n := min(2*r.doubts[v].length+1, mostDoubt)
	r.doubts[v] = doubt{n, n, time.Now()}
	id.Watches.ListAgain(func(s watcher.Source) bool { return rightOf(s) == v.right })
}

// get returns an identity in use, or nil.
func (ids *Identities) get(key identityKey) *Identity {
	if key == (identityKey{}) {
		return ids.Own
	}
	ids.mu.Lock()
	defer ids.mu.Unlock()
	if id := ids.others[key]; id != nil {
		return id.Identity
	}
	return nil
}

// inUse returns the rights of all watches that are not denied.
func (ids *Identities) inUse() uses {
	used := uses{}
	for key, set := range ids.sets() {
		used[key] = map[right]time.Time{}
		for source, state := range set.States() {
			if state.Phase == watcher.Denied || state.Phase == watcher.Absent {
				continue
			}
			right := rightOf(source)
			if last := used[key][right]; state.Since.After(last) {
				used[key][right] = state.Since
			}
		}
	}
	return used
}

// refusals reports the identity of each refused request.
type refusals struct {
	http.RoundTripper

	key     identityKey
	refused chan<- identityKey
}

// RoundTrip implements http.RoundTripper. A review that is refused says nothing about other
// rights.
func (t *refusals) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := t.RoundTripper.RoundTrip(req)
	if err == nil && res.StatusCode == http.StatusForbidden && !strings.HasSuffix(req.URL.Path, "accessreviews") {
		select {
		case t.refused <- t.key:
		default: // the next round reviews it
		}
	}
	return res, err
}

// reporting makes the clients of a config report refused requests.
func (ids *Identities) reporting(config *rest.Config, key identityKey) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &refusals{next, key, ids.refused} })
}
