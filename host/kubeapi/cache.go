// SPDX-License-Identifier: Apache-2.0

package kubeapi

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/vmihailenco/msgpack/v5"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/kubeapi/kinds"
)

// defaultPage is the number of objects that cache_list returns without a limit, and that the cache
// returns at a time.
const defaultPage = 500

// Cache has the objects that a controller's watches have delivered. Any number of goroutines may
// use it. Objects are msgpack and never change.
//
// An error with a method Status() abi.Status explains why there is no answer: StatusNotSynced if
// the watch has not listed yet, or StatusBadRequest if the controller does not watch the resource,
// or not in this namespace, or StatusDenied if the right to watch it was taken back. Any other error is StatusInternal. An error whose method Elsewhere()
// bool returns true means that other replicas watch some of the objects. Then the API server is
// asked.
type Cache interface {
	// Stored returns the state of an object, or nil. For an object, complete reports whether all of its
	// content is stored, in this version of the resource. For nil, it reports whether the watches would
	// have the object if it existed.
	Stored(gvr schema.GroupVersionResource, key abi.Key) (o abi.Stored, complete bool)
	// Epoch changes when the versions of the API server have run backwards, as after a restore of etcd.
	// What is known of versions of another epoch is void.
	Epoch() uint64
	// RanBackwards reports that the API server has answered with an older version of an object of a
	// resource than the stored one.
	RanBackwards(gvr schema.GroupVersionResource)
	// Get returns an object, or nil if it does not exist.
	Get(gvr schema.GroupVersionResource, key abi.Key) (object []byte, err error)
	// List returns up to limit objects whose key follows the given one, ordered by namespace and
	// name, and the key of the last one. An empty namespace means all. With an owner, which is a
	// UID, only objects that it owns are returned. With an index, objects without the value may be
	// omitted. more reports whether further objects exist.
	List(gvr schema.GroupVersionResource, namespace, owner string, index *abi.Index, matches func(l labels.Labels, object []byte) bool,
		after abi.Key, limit int) (objects [][]byte, more bool, last abi.Key, err error)
	// Learn gives an index the values of objects.
	Learn(gvr schema.GroupVersionResource, index *abi.Index, entries []abi.IndexEntry)
}

// cached serves a permitted read of the cache.
func (a *API) cached(ctx context.Context, r *request) abi.Response {
	if r.op == abi.OpCacheGet {
		return a.cacheGet(r)
	}
	return a.cacheList(ctx, r)
}

// cacheGet serves a permitted cache_get.
func (a *API) cacheGet(r *request) abi.Response {
	object, err := a.cfg.Cache.Get(r.kind.GVR(), r.key)
	if err != nil {
		return r.fromCache(err)
	}
	if object == nil {
		status := apierrors.NewNotFound(r.kind.GVR().GroupResource(), r.key.Name).Status()
		return fromStatus(&status)
	}
	if len(object) > abi.MaxBytes {
		return refuse(abi.StatusTooLarge, fmt.Sprintf("the object has %d bytes, the limit is %d", len(object), abi.MaxBytes))
	}
	return abi.Response{Body: object}
}

// cacheList serves a permitted cache_list. A page ends at the limit, or before the object that
// would make it too large.
func (a *API) cacheList(ctx context.Context, r *request) abi.Response {
	where, err := parseSelectors(ctx, r.LabelSelector, r.FieldSelector)
	if err != nil {
		return refuse(abi.StatusBadRequest, err.Error())
	}
	after, err := parseContinue(r.Continue)
	if err != nil {
		return refuse(abi.StatusBadRequest, err.Error())
	}
	if r.Limit < 0 {
		return refuse(abi.StatusBadRequest, fmt.Sprintf("limit: %d is negative", r.Limit))
	}
	index, err := a.index(r, where)
	if err != nil {
		return refuse(abi.StatusBadRequest, err.Error())
	}
	if len(r.Entries) > 0 {
		a.cfg.Cache.Learn(r.kind.GVR(), index, r.Entries)
	}
	p := page{items: []msgpack.RawMessage{}, last: after, more: true, room: pageRoom}
	for limit := min(cmp.Or(r.Limit, defaultPage), MaxListItems); p.more && !p.full && int64(len(p.items)) < limit; {
		left := int(min(limit-int64(len(p.items)), defaultPage))
		objects, more, last, err := a.cfg.Cache.List(r.kind.GVR(), r.key.Namespace, r.Owner, index, where.match, p.last, left)
		if err != nil {
			return r.fromCache(err)
		}
		if ctx.Err() != nil {
			return refuse(abi.StatusCancelled, context.Cause(ctx).Error())
		}
		if err := p.add(objects, last); err != nil {
			return refuse(abi.StatusTooLarge, err.Error())
		}
		p.more = p.full || more && len(objects) > 0
	}
	if err := r.ledger.takeBytes(pageCopies * (pageRoom - p.room)); err != nil {
		return a.failed(ctx, r, err)
	}
	return p.response(r.kind)
}

// index returns the index for a list: one of the module's, or one of the first field that must have
// a value. It returns nil if there is none.
func (a *API) index(r *request, where *objectSelector) (*abi.Index, error) {
	switch {
	case r.Index != "":
		return &abi.Index{Scope: a.scope, Name: r.Index, Value: r.Value}, nil
	case r.Value != "":
		return nil, badf("value: needs an index: give its name in index")
	case len(r.Entries) > 0:
		return nil, badf("entries: need an index: give its name in index")
	}
	return where.fields.index(a.scope), nil
}

// fromCache returns the answer for an error of the cache.
func (r *request) fromCache(err error) abi.Response {
	var sharded interface{ Elsewhere() bool }
	r.elsewhere = errors.As(err, &sharded) && sharded.Elsewhere()
	var known interface{ Status() abi.Status }
	if !errors.As(err, &known) {
		return refuse(abi.StatusInternal, fmt.Sprintf("cache of %s: %v", r.kind.Name(), err))
	}
	message := fmt.Sprintf("cache of %s: %v", r.kind.Name(), err)
	if known.Status() == abi.StatusBadRequest {
		message += fmt.Sprintf("; add this to the watches of the module's manifest, with a map, or to owns: {%q:%q,%q:%q,%q:%q}",
			"group", r.kind.Group, "version", r.kind.Version, "kind", r.kind.Kind)
	}
	return refuse(known.Status(), message)
}

// askServer changes a read of the cache into a read of the API server, which has the objects that
// this replica does not watch. It returns an answer if that is impossible.
func (r *request) askServer() *abi.Response {
	if r.op == abi.OpCacheGet {
		r.op = abi.OpAPIGet
		return nil
	}
	if r.Owner != "" {
		refused := refuse(abi.StatusBadRequest, "owner: other replicas watch some of the objects (--shards): give the namespace of the object, or use api_list")
		return &refused
	}
	r.op, r.Limit = abi.OpAPIList, cmp.Or(r.Limit, defaultPage)
	return nil
}

// page is a list under construction.
type page struct {
	items      []msgpack.RawMessage
	last       abi.Key
	more, full bool
	// room is the number of bytes left for items.
	room int
}

// pageRoom is the maximum size of the items of a page. The rest is for the text around them.
const pageRoom = abi.MaxBytes - 4<<10

// add appends objects until the page is full. last is the key of the last object.
func (p *page) add(objects [][]byte, last abi.Key) error {
	for i, object := range objects {
		if len(object) <= p.room {
			p.items = append(p.items, object)
			p.room -= len(object)
			continue
		}
		p.full = true
		if len(p.items) == 0 {
			return fmt.Errorf("the first object has %d bytes, the limit is %d", len(object), p.room)
		}
		if i == 0 {
			return nil
		}
		before, err := unpack(objects[i-1])
		if err != nil {
			return err
		}
		p.last = before.key()
		return nil
	}
	if len(objects) > 0 {
		p.last = last
	}
	return nil
}

// response returns the page as a list in the API server's form, with its keys ordered like those of
// abi.AppendValue.
func (p *page) response(kind kinds.Kind) abi.Response {
	var list struct {
		APIVersion string               `msgpack:"apiVersion"`
		Items      []msgpack.RawMessage `msgpack:"items"`
		Kind       string               `msgpack:"kind"`
		Metadata   struct {
			Continue string `msgpack:"continue,omitempty"`
		} `msgpack:"metadata"`
	}
	list.APIVersion, list.Kind = kind.GVK().ToAPIVersionAndKind()
	list.Kind, list.Items = list.Kind+"List", p.items
	if p.more {
		list.Metadata.Continue = formatContinue(p.last)
	}
	b, err := msgpack.Marshal(&list)
	if err != nil {
		return refuse(abi.StatusInternal, "cache_list: "+err.Error())
	}
	return abi.Response{Body: b}
}

// continueVersion starts every continue token, so that the format can change.
const continueVersion = "1/"

// formatContinue returns the token that continues a list after a key. It is a position in the order
// of all keys, so it stays valid after any change.
func formatContinue(after abi.Key) string {
	return base64.RawURLEncoding.EncodeToString([]byte(continueVersion + after.Namespace + "/" + after.Name))
}

func parseContinue(token string) (abi.Key, error) {
	if token == "" {
		return abi.Key{}, nil
	}
	text, err := base64.RawURLEncoding.DecodeString(token)
	rest, ok := strings.CutPrefix(string(text), continueVersion)
	namespace, name, found := strings.Cut(rest, "/")
	if err != nil || !ok || !found || name == "" {
		return abi.Key{}, badf("continue: %q is not from an answer of cache_list", shorten(token))
	}
	return abi.Key{Namespace: namespace, Name: name}, nil
}
