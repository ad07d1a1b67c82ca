// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/wasmctl/wasmctl/internal/replay/shadow"
)

// ShadowOptions set how long a module shadows the live one.
type ShadowOptions struct {
	// For is the time during which runs are recorded, and Count the number of compared runs
	// after which the shadow ends; 0 means no limit.
	For   time.Duration
	Count int
	// All makes the live module reconcile all objects once.
	All bool
	// Proof is the same as in SwapOptions.
	Proof []byte
}

// Shadowed is one run of the live module, compared with that of the shadow.
type Shadowed struct {
	Object      string `json:"object"`
	ReconcileID string `json:"reconcileId"`
	// Differences is empty if both did the same.
	Differences []shadow.Difference `json:"differences"`
}

// shadowLine is one line of the answer; one of its fields is set.
type shadowLine struct {
	Run     *Shadowed       `json:"run,omitempty"`
	Summary *shadow.Summary `json:"summary,omitempty"`
	Error   string          `json:"error,omitempty"`
}

// Shadow implements Service.Shadow. It ends early if ctx ends or report returns an error.
func (c *Client) Shadow(ctx context.Context, controller string, wasm []byte, options ShadowOptions, report func(Shadowed) error) (shadow.Summary, error) {
	q := url.Values{"for": {options.For.String()}, "count": {strconv.Itoa(options.Count)}, "all": {strconv.FormatBool(options.All)}}
	setProof(q, options.Proof)
	body, err := c.open(ctx, http.MethodPost, "controllers/"+url.PathEscape(controller)+"/shadow?"+q.Encode(), wasm)
	if err != nil {
		return shadow.Summary{}, err
	}
	defer func() { _ = body.Close() }()
	for lines := json.NewDecoder(body); ; {
		var line shadowLine
		if err := lines.Decode(&line); err != nil {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			} else if errors.Is(err, io.EOF) {
				err = errors.New("the process has exited")
			}
			return shadow.Summary{}, fmt.Errorf("%s: %w", c.name, err)
		}
		switch {
		case line.Error != "":
			return shadow.Summary{}, errors.New(line.Error)
		case line.Summary != nil:
			return *line.Summary, nil
		case line.Run != nil:
			if err := report(*line.Run); err != nil {
				return shadow.Summary{}, err
			}
		}
	}
}

// shadow serves the command: one JSON object per line, the last of which is the summary or
// an error.
func (s *Server) shadow(w http.ResponseWriter, r *http.Request) {
	wasm, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxModule))
	if err != nil {
		answer(w, nil, fmt.Errorf("body: %w", err))
		return
	}
	options, err := shadowOptions(r.URL.Query())
	if err != nil {
		answer(w, nil, err)
		return
	}
	started := false
	lines, flush := json.NewEncoder(w), http.NewResponseController(w)
	send := func(line shadowLine) error {
		started = true
		return errors.Join(lines.Encode(line), flush.Flush())
	}
	sum, err := s.service.Shadow(r.Context(), r.PathValue("name"), wasm, options, func(run Shadowed) error { return send(shadowLine{Run: &run}) })
	switch {
	case err == nil:
		_ = send(shadowLine{Summary: &sum}) // the client is gone
	case started:
		_ = send(shadowLine{Error: err.Error()})
	default:
		answer(w, nil, err)
	}
}

func shadowOptions(q url.Values) (options ShadowOptions, err error) {
	if options.For, err = time.ParseDuration(q.Get("for")); err != nil || options.For <= 0 {
		return options, fmt.Errorf("for: %q: want a time such as 5m", q.Get("for"))
	}
	if text := q.Get("count"); text != "" {
		if options.Count, err = strconv.Atoi(text); err != nil || options.Count < 0 {
			return options, fmt.Errorf("count: %q: want a number", text)
		}
	}
	options.All = q.Get("all") == "true"
	options.Proof, err = proofOf(q)
	return options, err
}
