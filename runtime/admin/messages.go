// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/wasmctl/wasmctl/internal/failure"
)

// triggerRequest is the body of a trigger.
type triggerRequest struct {
	Objects []string `json:"objects,omitempty"`
	Force   bool     `json:"force,omitempty"`
}

// pauseRequest is the body of a pause; without an object it applies to the controller.
type pauseRequest struct {
	Object string `json:"object,omitempty"`
}

type rollbackRequest struct {
	To uint64 `json:"to,omitempty"`
}

type configRequest struct {
	Change map[string]*string `json:"change"`
}

type configResponse struct {
	ConfigGen int64 `json:"configGen"`
}

// errorResponse is the answer to a request that has failed.
type errorResponse struct {
	Error string        `json:"error"`
	Class failure.Class `json:"class,omitempty"`
}

// err returns the error of the process, with its class.
func (e *errorResponse) err() error {
	err := errors.New(e.Error)
	if e.Class == "" {
		return err
	}
	return e.Class.Wrap(err)
}

// ClassOf returns the class of an error, or "" if it has none. An error of a request to the API server needs no explicit class: it is
// Denied if the API server has refused the request, and Cluster if there is no answer.
func ClassOf(err error) failure.Class {
	_, unanswered := errors.AsType[*url.Error](err)
	switch class := failure.Of(err); {
	case class != "":
		return class
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return failure.Denied
	case unanswered && !errors.Is(err, context.Canceled):
		return failure.Cluster
	}
	return ""
}

// unknownPart is the error of a request to a process of another version, which does not have a part of the request or all of it.
func unknownPart(version, part string) error {
	return fmt.Errorf("the process is wasmctl %s, which does not know %s: use that version of wasmctl for the command", version, part)
}
