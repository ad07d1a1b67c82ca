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

// defaultPage is how many objects cache_list returns where no limit is given,
// and how many are asked of the cache at a time.
const defaultPage = 500

// Cache is what the watches of a controller have brought. It may be asked by
// any number of goroutines. Objects are msgpack and are not changed afterwards.
//
// An error that has a method Status() abi.Status says why there is no answer:
// StatusNotSynced, if the watch has not listed yet, or StatusBadRequest, if the
// controller does not watch the resource, or not there. Any other error is
// StatusInternal. Where an error has a method Elsewhere() bool that returns true,
// other replicas watch some of the objects: then the API server is asked.
type Cache interface {
	// Get returns an object, nil if it is not there.
	Get(gvr schema.GroupVersionResource, key abi.Key) (object []byte, err error)
	// List returns up to limit objects whose key comes after the given one, in the
	// order of namespace and name, and the key of the last of them. An empty
	// namespace means all; with an owner, which is a uid, only objects that it
	// owns; with an index, no objects that it knows not to have the value. More says
	// that there are further ones.
	List(gvr schema.GroupVersionResource, namespace, owner string, index *abi.Index, matches func(l labels.Labels, object []byte) bool,
		after abi.Key, limit int) (objects [][]byte, more bool, last abi.Key, err error)
	// Learn tells an index the values of objects.
	Learn(gvr schema.GroupVersionResource, index *abi.Index, entries []abi.IndexEntry)
}

// cached serves a read of the cache, once it is allowed.
func (a *API) cached(ctx context.Context, r *request) abi.Response {
	if r.op == abi.OpCacheGet {
		return a.cacheGet(r)
	}
	return a.cacheList(ctx, r)
}

// cacheGet serves cache_get, once it is allowed.
func (a *API) cacheGet(r *request) abi.Response {
	object, err := a.cache.Get(r.kind.GVR(), r.key)
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

// cacheList serves cache_list, once it is allowed. A page ends at the limit, or
// before the object that would make it too large.
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
		a.cache.Learn(r.kind.GVR(), index, r.Entries)
	}
	p := page{items: []msgpack.RawMessage{}, last: after, more: true, room: a.limits.pageRoom()}
	for limit := a.limits.cachePage(r.Limit); p.more && !p.full && int64(len(p.items)) < limit; {
		left := int(min(limit-int64(len(p.items)), defaultPage))
		objects, more, last, err := a.cache.List(r.kind.GVR(), r.key.Namespace, r.Owner, index, where.match, p.last, left)
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
	if err := r.ledger.takeBytes(pageCopies * (a.limits.pageRoom() - p.room)); err != nil {
		return a.failed(ctx, r, err)
	}
	return p.response(r.kind)
}

// index returns where a list looks for its objects: in an index of the module's, or in
// one of the first field that has to have a value; nil is nowhere.
func (a *API) index(r *request, where *objectSelector) (*abi.Index, error) {
	switch {
	case r.Index != "":
		return &abi.Index{Scope: a.scope, Name: r.Index, Value: r.Value}, nil
	case r.Value != "":
		return nil, badf("value: of which index? give its name in index")
	case len(r.Entries) > 0:
		return nil, badf("entries: of which index? give its name in index")
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

// askServer makes a read of the cache one of the API server, which answers what this
// replica does not watch. It returns the answer where that cannot be.
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

// page is a list on its way.
type page struct {
	items      []msgpack.RawMessage
	last       abi.Key
	more, full bool
	// room is how many more bytes of items it may have.
	room int
}

// pageRoom is reserved for the text around the items of a list.
const pageRoom = 4 << 10

// add appends objects, of which the last has the key last, until the page is
// full.
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

// response writes the page as a list of the API server's form, its keys in
// order as abi.AppendValue has them.
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

// continueVersion starts every continue token, so that its form can change.
const continueVersion = "1/"

// formatContinue returns the token that continues a list after a key. It names
// a place in the order of all keys, so that it stays good whatever changes.
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
