// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// LogQuery selects lines of a log.
type LogQuery struct {
	// Object is "namespace/name", or the name for a cluster-scoped kind; if empty, all
	// lines match.
	Object string
	// Since is the time of the first line; if zero, the log is read from its beginning.
	Since time.Time
	// Tail is the maximum number of existing lines; if negative, there is no limit.
	Tail int
	// Follow continues with new lines.
	Follow bool
}

type levelRequest struct {
	Level string `json:"level,omitempty"`
}

type levelResponse struct {
	Level string `json:"level"`
}

func (s *Server) logs(w http.ResponseWriter, r *http.Request) {
	q, err := parseLogQuery(r.URL.Query())
	if err != nil {
		answer(w, nil, err)
		return
	}
	started := false
	err = s.service.Logs(r.Context(), r.PathValue("name"), q, func(line []byte) error {
		if !started {
			w.Header().Set("Content-Type", "application/x-ndjson")
			started = true
		}
		if _, err := w.Write(line); err != nil {
			return err
		}
		return http.NewResponseController(w).Flush()
	})
	if err != nil && !started {
		answer(w, nil, err)
	}
}

func parseLogQuery(v url.Values) (q LogQuery, err error) {
	q = LogQuery{Object: v.Get("object"), Follow: v.Get("follow") == "true", Tail: -1}
	if since := v.Get("since"); since != "" {
		if q.Since, err = time.Parse(time.RFC3339Nano, since); err != nil {
			return q, fmt.Errorf("since: %w", err)
		}
	}
	if tail := v.Get("tail"); tail != "" {
		if q.Tail, err = strconv.Atoi(tail); err != nil {
			return q, fmt.Errorf("tail: %w", err)
		}
	}
	return q, nil
}

func (s *Server) logLevel(_ context.Context, controller string, req levelRequest) (levelResponse, error) {
	level, err := s.service.LogLevel(controller, req.Level)
	return levelResponse{level}, err
}

// LogLevel implements Service.LogLevel.
func (c *Client) LogLevel(ctx context.Context, controller, level string) (string, error) {
	res, err := post[levelResponse](ctx, c, controller, "log-level", levelRequest{level})
	return res.Level, err
}

// Logs implements Service.Logs. It returns an error if the process ends while the log is
// followed, or if ctx ends.
func (c *Client) Logs(ctx context.Context, controller string, q LogQuery, emit func(line []byte) error) error {
	values := url.Values{"object": {q.Object}, "follow": {strconv.FormatBool(q.Follow)}, "tail": {strconv.Itoa(q.Tail)}}
	if !q.Since.IsZero() {
		values.Set("since", q.Since.Format(time.RFC3339Nano))
	}
	path := "controllers/" + url.PathEscape(controller) + "/logs?" + values.Encode()
	body, err := c.open(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	limited := &io.LimitedReader{R: body}
	for r := bufio.NewReader(limited); ; {
		limited.N = c.most
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(bytes.TrimSpace(line)) == 0 {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: log: %w", c.name, err)
		}
		if err := emit(line); err != nil {
			return err
		}
	}
}
