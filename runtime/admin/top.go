package admin

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"github.com/wasmctl/wasmctl/runtime/history"
)

// Top is what keeps a process busy.
type Top struct {
	// Controllers are all of them, Objects the busiest of any, those with the most
	// time first.
	Controllers []TopController `json:"controllers"`
	Objects     []TopObject     `json:"objects"`
}

// TopController is how busy a controller is.
type TopController struct {
	Name string `json:"name"`
	history.Load
	// Decoded is how many bytes of objects are decoded for it each second: Answers,
	// and its equal part of each watch, which controllers share.
	Decoded float64 `json:"decodedBytes"`
	// Memory is the linear memory of its instances in bytes, HostMemory that of the
	// host for its operations.
	Memory     int64 `json:"memory"`
	HostMemory int64 `json:"hostMemory"`
	// Workers is how many it has, Running how many of them are busy now.
	Workers int `json:"workers"`
	Running int `json:"running"`
}

// TopObject is how busy an object keeps its controller.
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

// Top is Service.Top.
func (c *Client) Top(ctx context.Context, objects int) (Top, error) {
	var res Top
	err := c.do(ctx, http.MethodGet, "top?objects="+strconv.Itoa(objects), nil, &res)
	return res, err
}
