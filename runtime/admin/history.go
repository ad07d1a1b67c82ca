// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// ChangeStarted is the Result of a start. The others are those of package life.
const ChangeStarted = "started"

// Change is a change of the module that a controller runs, or an attempt.
type Change struct {
	Time time.Time `json:"time"`
	// Revision is the number of the revision; 0 for a module that was refused. Numbers begin
	// with 1 at each start of the controller.
	Revision uint64 `json:"revision,omitempty"`
	Digest   string `json:"digest"`
	// Module is the file or the reference; empty if it is unknown.
	Module string `json:"module,omitempty"`
	// Result is started, swapped, rollback (by a user), refused, rolled_back (after its
	// probation), stuck (it failed its probation, and no other revision is left), canary
	// (started), promoted, aborted, failed (as a canary) or replaced.
	Result string `json:"result"`
	// Why is the reason. After a command, it names the user.
	Why string `json:"why,omitempty"`
}

// historyResponse is the answer to a request for a history.
type historyResponse struct {
	Changes []Change `json:"changes"`
}

func (s *Server) history(w http.ResponseWriter, r *http.Request) {
	changes, err := s.service.History(r.PathValue("name"))
	answer(w, historyResponse{changes}, err)
}

// History implements Service.History.
func (c *Client) History(ctx context.Context, controller string) ([]Change, error) {
	var res historyResponse
	err := c.do(ctx, http.MethodGet, "controllers/"+url.PathEscape(controller)+"/history", nil, &res)
	return res.Changes, err
}
