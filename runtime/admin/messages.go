// SPDX-License-Identifier: Apache-2.0

package admin

import "fmt"

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

// unknownPart is the error of a request to a process of another version, which does not have a part of the request or all of it.
func unknownPart(version, part string) error {
	return fmt.Errorf("the process is wasmctl %s, which does not know %s: use that version of wasmctl for the command", version, part)
}
