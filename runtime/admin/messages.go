// SPDX-License-Identifier: Apache-2.0

package admin

// triggerRequest is the body of a trigger.
type triggerRequest struct {
	Objects []string `json:"objects,omitempty"`
	Force   bool     `json:"force,omitempty"`
}

// triggerResponse is the answer to a trigger.
type triggerResponse struct {
	Triggered int `json:"triggered"`
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

type errorResponse struct {
	Error string `json:"error"`
}
