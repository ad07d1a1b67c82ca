// SPDX-License-Identifier: Apache-2.0

package abi

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
)

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
		if strings.Contains(d.Message, text) {
			continue // the SDKs make the message of the causes
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
