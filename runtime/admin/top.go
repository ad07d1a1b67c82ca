// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"github.com/wasmctl/wasmctl/runtime/history"
)

// Top has the load of a process.
type Top struct {
	// Controllers has all controllers, and Objects the busiest objects of all controllers,
	// both with the busiest first.
	Controllers []TopController `json:"controllers"`
	Objects     []TopObject     `json:"objects"`
}

// TopController is the load of a controller.
type TopController struct {
	Name string `json:"name"`
	history.Load
	// Decoded is the number of bytes of objects that are decoded for it per second:
	// Answers, and its equal part of each watch that controllers share.
	Decoded float64 `json:"decodedBytes"`
	// Memory is the linear memory of its instances in bytes, and HostMemory that of the
	// host for its operations.
	Memory     int64 `json:"memory"`
	HostMemory int64 `json:"hostMemory"`
	// Workers is the number of its workers, and Running how many of them are busy.
	Workers int `json:"workers"`
	Running int `json:"running"`
}

// TopObject is the load that an object causes in its controller.
type TopObject struct {
	Controller string `json:"controller"`
	Object     string `json:"object"`
	history.Load
}

// maxTop is the maximum number of objects of a request.
const maxTop = 1000

func (s *Server) top(w http.ResponseWriter, r *http.Request) {
	n, err := strconv.Atoi(r.URL.Query().Get("objects"))
	if err != nil || n < 0 || n > maxTop {
		answer(w, nil, fmt.Errorf("objects: want 0 to %d", maxTop))
		return
	}
	answer(w, s.service.Top(n), nil)
}

// Top implements Service.Top.
func (c *Client) Top(ctx context.Context, objects int) (Top, error) {
	var res Top
	err := c.do(ctx, http.MethodGet, "top?objects="+strconv.Itoa(objects), nil, &res)
	return res, err
}
