// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"

	"github.com/wasmctl/wasmctl/abi"
)

// Release selects the objects of a release: either Objects or All is set.
type Release struct {
	Objects []abi.Key
	All     bool
	DryRun  bool
}

// Released is the result of a release for one object.
type Released struct {
	// Object is its namespace and name. Deleting reports whether its deletion waited for the
	// finalizer.
	Object   string `json:"object"`
	Deleting bool   `json:"deleting,omitempty"`
	// Absent reports that the object does not exist or does not have the finalizer.
	Absent bool `json:"absent,omitempty"`
	// Error is the reason why the object still has the finalizer; empty if it was released.
	Error string `json:"error,omitempty"`
}

// releaseRequest is the body of a release.
type releaseRequest struct {
	Objects []string `json:"objects,omitempty"`
	All     bool     `json:"all,omitempty"`
	DryRun  bool     `json:"dryRun,omitempty"`
}

// releaseResponse is the answer to a release.
type releaseResponse struct {
	Released []Released `json:"released"`
}

func (s *Server) release(ctx context.Context, controller string, req releaseRequest) (res releaseResponse, err error) {
	what := Release{All: req.All, DryRun: req.DryRun}
	if what.Objects, err = parseKeys(req.Objects); err == nil {
		res.Released, err = s.service.Release(ctx, controller, what)
	}
	return res, err
}

// Release implements Service.Release.
func (c *Client) Release(ctx context.Context, controller string, what Release) ([]Released, error) {
	req := releaseRequest{All: what.All, DryRun: what.DryRun}
	for _, key := range what.Objects {
		req.Objects = append(req.Objects, key.String())
	}
	res, err := post[releaseResponse](ctx, c, controller, "release", req)
	return res.Released, err
}
