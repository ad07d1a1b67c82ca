// SPDX-License-Identifier: Apache-2.0

package abi

import "fmt"

// EventType is the kind of change of a watched object.
type EventType string

// The types of an event.
const (
	EventListed  EventType = "Listed"  // it existed when the watch started
	EventUpdated EventType = "Updated" // it was created or changed
	EventDeleted EventType = "Deleted" // it was deleted
)

// Event is the input of map and filter: one change of one watched object.
type Event struct {
	Controller string
	// Group, Version and Kind are those of the watch.
	Group, Version, Kind string
	Type                 EventType
	// Key identifies the object.
	Key Key
	// Old and New are the object's msgpack before and after the change; nil if it was not known before, or is gone.
	Old, New []byte
}

// AppendEventHead appends everything of an event except the bytes of its objects. The message is head[:split], Old, head[split:], New, so
// that objects are copied only once from the store to guest memory.
func AppendEventHead(dst []byte, e *Event) (head []byte, split int) {
	dst = AppendMapHead(dst, 5+count(e.Old != nil)+count(e.New != nil))
	dst = AppendInt(appendString(dst, keyV), Version)
	dst = appendString(appendString(dst, keyController), e.Controller)
	dst = AppendMapHead(appendString(dst, keyWatch), 3)
	dst = appendString(appendString(dst, keyGroup), e.Group)
	dst = appendString(appendString(dst, keyVersion), e.Version)
	dst = appendString(appendString(dst, keyKind), e.Kind)
	dst = appendString(appendString(dst, keyType), string(e.Type))
	dst = appendKey(appendString(dst, keyKey), e.Key)
	if e.Old != nil {
		dst = appendString(dst, keyOld)
	}
	split = len(dst)
	if e.New != nil {
		dst = appendString(dst, keyNew)
	}
	return dst, split
}

// MapResult is the output of map.
type MapResult struct {
	// Keys are the affected objects, at most MaxItems.
	Keys []Key
	// Error is not nil if the guest failed to determine them.
	Error *ResultError
	// Unknown lists keys of the message that this host does not know.
	Unknown []string
}

// maxName is the maximum length of an object name in Kubernetes, in bytes.
const maxName = 253

// DecodeMapResult decodes the output of map. An empty message contains no keys.
func DecodeMapResult(b []byte) (MapResult, error) {
	var res MapResult
	var err error
	r := reader{b: b}
	res.Unknown, err = r.message(func(key string) (bool, error) {
		switch key {
		case keyKeys:
			return r.list(func() error {
				k, err := r.key()
				res.Keys = append(res.Keys, k)
				return err
			})
		case keyError:
			return r.resultError(&res.Error)
		}
		return false, nil
	})
	if err != nil {
		return MapResult{}, fmt.Errorf("keys: %w", err)
	}
	if res.Error != nil {
		res.Keys = nil
	}
	return res, nil
}

// key reads the key of an object.
func (r *reader) key() (k Key, err error) {
	if _, err = r.eachKey(func(key string) (bool, error) {
		switch key {
		case keyNamespace:
			return r.string(&k.Namespace)
		case keyName:
			return r.string(&k.Name)
		}
		return false, nil
	}); err != nil {
		return Key{}, err
	}
	if k.Name == "" || len(k.Name) > maxName || len(k.Namespace) > maxName {
		return Key{}, fmt.Errorf("%w: a key needs a name, and name and namespace have at most %d bytes", ErrType, maxName)
	}
	return k, nil
}
