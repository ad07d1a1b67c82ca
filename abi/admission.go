// SPDX-License-Identifier: Apache-2.0

package abi

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
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

// Cause is one reason of a denial, as in the details of a Kubernetes Status.
type Cause struct {
	// Type is a CamelCase word, such as "FieldValueInvalid"; Field is the path of the field. Both may be empty.
	Type, Field string
	Message     string
}

// Denial refuses a request. Its fields are those of a Kubernetes Status.
type Denial struct {
	// Code is the HTTP status, 400 to 599; 0 means 403.
	Code int
	// Reason is a CamelCase word, such as "Invalid"; it may be empty.
	Reason  string
	Message string
	Causes  []Cause
}

// Text returns the message of a denial and its causes in one text.
func (d *Denial) Text() string {
	parts := make([]string, 0, 1+len(d.Causes))
	if d.Message != "" {
		parts = append(parts, d.Message)
	}
	for _, c := range d.Causes {
		text := c.Message
		if c.Field != "" {
			text = c.Field + ": " + text
		}
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		return cmp.Or(d.Reason, "without a reason")
	}
	return strings.Join(parts, "; ")
}

// AdmissionResult is the output of validate and default.
type AdmissionResult struct {
	// Denied is nil if the request is allowed.
	Denied *Denial
	// Object is the object as default returned it; nil if it is unchanged. Base, if not nil, is the request's object as the guest read it:
	// the host applies the difference between Base and Object, so fields that the guest's types lack remain.
	Object, Base []byte
	// Warnings are shown to the client.
	Warnings []string
	// Audit are annotations for the audit log.
	Audit map[string]string
	// Error is not nil if the guest could not decide. The failure policy then applies.
	Error *ResultError
	// Unknown lists keys of the message that this host does not know.
	Unknown []string
}

// Bounds of an AdmissionResult.
const (
	MaxWarnings = 50
	MaxCauses   = 200
	MaxAudit    = 20
)

var (
	errDeniedObject = errors.New("a denied request has no object")
	errBaseOnly     = errors.New("base without object")
)

// DecodeAdmissionResult decodes the output of validate or default. An empty message allows the request unchanged.
func DecodeAdmissionResult(b []byte) (AdmissionResult, error) {
	var res AdmissionResult
	var err error
	r := reader{b: b}
	res.Unknown, err = r.message(func(key string) (bool, error) {
		switch key {
		case keyDenied:
			return r.denial(&res.Denied)
		case keyObject:
			return r.copied(&res.Object, 1)
		case keyBase:
			return r.copied(&res.Base, 1)
		case keyWarnings:
			return r.strings(&res.Warnings, MaxWarnings)
		case keyAudit:
			return r.stringMap(&res.Audit, MaxAudit)
		case keyError:
			return r.resultError(&res.Error)
		}
		return false, nil
	})
	switch {
	case err != nil:
	case res.Denied != nil && res.Object != nil:
		err = fmt.Errorf("%w: %w", ErrType, errDeniedObject)
	case res.Base != nil && res.Object == nil:
		err = fmt.Errorf("%w: %w", ErrType, errBaseOnly)
	}
	if err != nil {
		return AdmissionResult{}, fmt.Errorf("admission: %w", err)
	}
	return res, nil
}

func (r *reader) denial(dst **Denial) (bool, error) {
	if r.null() {
		return true, nil
	}
	d := &Denial{}
	*dst = d
	_, err := r.eachKey(func(key string) (bool, error) {
		switch key {
		case keyCode:
			return r.code(&d.Code)
		case keyReason:
			return r.string(&d.Reason)
		case keyMessage:
			return r.string(&d.Message)
		case keyCauses:
			return r.list(func() error {
				if len(d.Causes) == MaxCauses {
					return fmt.Errorf("%w: more than %d causes", ErrType, MaxCauses)
				}
				c, err := r.cause()
				d.Causes = append(d.Causes, c)
				return err
			})
		}
		return false, nil
	})
	return true, err
}

// code reads an HTTP status of a denial.
func (r *reader) code(dst *int) (bool, error) {
	if r.null() {
		return true, nil
	}
	n, err := r.int()
	if err == nil && n != 0 && (n < 400 || n > 599) {
		err = fmt.Errorf("%w: %d is not an HTTP status of an error, 400 to 599", ErrType, n)
	}
	*dst = int(n)
	return true, err
}

func (r *reader) cause() (c Cause, err error) {
	_, err = r.eachKey(func(key string) (bool, error) {
		switch key {
		case keyType:
			return r.string(&c.Type)
		case keyField:
			return r.string(&c.Field)
		case keyMessage:
			return r.string(&c.Message)
		}
		return false, nil
	})
	return c, err
}

// strings reads a list of at most most texts.
func (r *reader) strings(dst *[]string, most int) (bool, error) {
	return r.list(func() error {
		if len(*dst) == most {
			return fmt.Errorf("%w: more than %d entries", ErrType, most)
		}
		s, err := r.str()
		*dst = append(*dst, string(s))
		return err
	})
}

// stringMap reads a map of at most most texts.
func (r *reader) stringMap(dst *map[string]string, most int) (bool, error) {
	if r.null() {
		return true, nil
	}
	m := map[string]string{}
	_, err := r.eachKey(func(key string) (bool, error) {
		if len(m) == most {
			return true, fmt.Errorf("%w: more than %d entries", ErrType, most)
		}
		var s string
		_, err := r.string(&s)
		m[key] = s
		return true, err
	})
	*dst = m
	return true, err
}
