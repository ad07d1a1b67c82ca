// SPDX-License-Identifier: Apache-2.0

package abi

import (
	"maps"
	"slices"
	"time"
)

// Operation is what a request to the API server does.
type Operation string

// The operations of admission.
const (
	OperationCreate  Operation = "CREATE"
	OperationUpdate  Operation = "UPDATE"
	OperationDelete  Operation = "DELETE"
	OperationConnect Operation = "CONNECT"
)

// Operations lists all operations of admission.
var Operations = []Operation{OperationCreate, OperationUpdate, OperationDelete, OperationConnect}

// Target is the kind and the resource of a request, in one version.
type Target struct {
	Group, Version string
	// Kind is that of the request's body, such as "Deployment" or "Scale".
	Kind string
	// Resource is the plural, such as "deployments"; Subresource, such as "scale", may be empty.
	Resource, Subresource string
}

// User is the sender of a request.
type User struct {
	Name, UID string
	Groups    []string
	Extra     map[string][]string
}

// Admission is the input of validate and default: one request to the API server.
type Admission struct {
	// ID is the uid of the AdmissionReview.
	ID         string
	Controller string
	// Webhook is the path of the webhook in the manifest.
	Webhook   string
	Operation Operation
	// Target is what the webhook is registered for, and the version of the objects. Requested is what the client requested; it differs
	// if the API server has converted the request.
	Target, Requested Target
	// Key identifies the object. Its name is empty if the API server generates it.
	Key Key
	// Object is the object's msgpack, without managedFields; nil for DELETE. Old is the existing object; nil for CREATE.
	Object, Old []byte
	// Options is the msgpack of the request's options, such as CreateOptions, or nil.
	Options []byte
	User    User
	DryRun  bool
	// ConfigGen counts changes of the settings.
	ConfigGen int64
	// Deadline is when the call will be interrupted.
	Deadline time.Time
	// Caps lists the capabilities of this host.
	Caps []string
}

// AppendAdmissionHead appends everything of an admission except the bytes of its objects. The message is head[:split], Old, head[split:],
// Object.
func AppendAdmissionHead(dst []byte, a *Admission) (head []byte, split int) {
	n := 12 + count(a.Old != nil) + count(a.Object != nil) + count(a.Options != nil) + count(a.DryRun)
	dst = AppendMapHead(dst, n)
	dst = AppendInt(appendString(dst, keyV), Version)
	for _, s := range [][2]string{{keyID, a.ID}, {keyController, a.Controller}, {keyWebhook, a.Webhook}, {keyOperation, string(a.Operation)}} {
		dst = appendString(appendString(dst, s[0]), s[1])
	}
	dst = appendTarget(appendString(dst, keyTarget), &a.Target)
	dst = appendTarget(appendString(dst, keyRequested), &a.Requested)
	dst = appendKey(appendString(dst, keyKey), a.Key)
	dst = appendUser(appendString(dst, keyUser), &a.User)
	dst = AppendInt(appendString(dst, keyConfigGen), a.ConfigGen)
	dst = AppendInt(appendString(dst, keyDeadlineMS), unixMS(a.Deadline))
	dst = appendStrings(appendString(dst, keyCaps), a.Caps)
	if a.DryRun {
		dst = appendBool(appendString(dst, keyDryRun), true)
	}
	if a.Options != nil {
		dst = append(appendString(dst, keyOptions), a.Options...)
	}
	if a.Old != nil {
		dst = appendString(dst, keyOld)
	}
	split = len(dst)
	if a.Object != nil {
		dst = appendString(dst, keyObject)
	}
	return dst, split
}

func appendTarget(dst []byte, t *Target) []byte {
	dst = AppendMapHead(dst, 4+count(t.Subresource != ""))
	for _, s := range [][2]string{{keyGroup, t.Group}, {keyVersion, t.Version}, {keyKind, t.Kind}, {keyResource, t.Resource}} {
		dst = appendString(appendString(dst, s[0]), s[1])
	}
	if t.Subresource != "" {
		dst = appendString(appendString(dst, keySubresource), t.Subresource)
	}
	return dst
}

func appendUser(dst []byte, u *User) []byte {
	dst = AppendMapHead(dst, 1+count(u.UID != "")+count(len(u.Groups) > 0)+count(len(u.Extra) > 0))
	dst = appendString(appendString(dst, keyUsername), u.Name)
	if u.UID != "" {
		dst = appendString(appendString(dst, keyUID), u.UID)
	}
	if len(u.Groups) > 0 {
		dst = appendStrings(appendString(dst, keyGroups), u.Groups)
	}
	if len(u.Extra) > 0 {
		dst = AppendMapHead(appendString(dst, keyExtra), len(u.Extra))
		for _, k := range slices.Sorted(maps.Keys(u.Extra)) {
			dst = appendStrings(appendString(dst, k), u.Extra[k])
		}
	}
	return dst
}
