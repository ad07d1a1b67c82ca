// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/internal/humanize"
)

// maxAnswer is Client.most. The other end may be a pod that only looks like wasmctl.
const maxAnswer = 128 << 20

// ErrNotFound is wrapped by Find's error if no process serves a socket.
var ErrNotFound = errors.New("no wasmctl process is running")

// Dir returns the folder in which the processes of this user create their sockets.
func Dir() string {
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		return filepath.Join(dir, "wasmctl")
	}
	return filepath.Join(os.TempDir(), "wasmctl-"+strconv.Itoa(os.Getuid()))
}

// DefaultPath returns the socket of the process with this ID.
func DefaultPath(pid int) string { return filepath.Join(Dir(), strconv.Itoa(pid)+".sock") }

// FindAll returns the sockets of this user's running processes. If there are none, it
// returns an error.
func FindAll(ctx context.Context) ([]string, error) {
	if err := checkDir(Dir()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	paths, err := filepath.Glob(filepath.Join(Dir(), "*.sock"))
	if err != nil {
		return nil, err
	}
	var alive []string
	for _, path := range paths {
		if answers(ctx, path) {
			alive = append(alive, path)
		}
	}
	if len(alive) == 0 {
		return nil, failure.Cluster.Wrap(fmt.Errorf("%w: start one with wasmctl run, or name its socket with --socket", ErrNotFound))
	}
	return alive, nil
}

// Find returns the socket of the only running process of this user.
func Find(ctx context.Context) (string, error) {
	alive, err := FindAll(ctx)
	if err != nil {
		return "", err
	}
	if len(alive) == 1 {
		return alive[0], nil
	}
	return "", failure.Usage.Wrap(fmt.Errorf("%d processes are running: choose a socket with --socket, or see them with wasmctl status --all: %s", len(alive), strings.Join(alive, ", ")))
}

// Client sends requests to a process. Its methods match those of Service, but each takes a
// context.
type Client struct {
	name string // of the other end, in errors
	http *http.Client
	most int64 // the maximum size of an answer, and of a line of a log
}

// NewClient returns a Client of the socket at path. It connects when it is used.
func NewClient(path string) *Client {
	return NewClientOver("admin socket["+path+"]", func(ctx context.Context) (net.Conn, error) { return dial(ctx, &net.Dialer{}, path) })
}

// NewClientOver returns a Client that connects with dial. Errors contain the name of the other end.
func NewClientOver(name string, dial func(context.Context) (net.Conn, error)) *Client {
	connect := func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) }
	return &Client{name: name, http: &http.Client{Transport: &http.Transport{DialContext: connect}}, most: maxAnswer}
}

// Status returns the state of the process.
func (c *Client) Status(ctx context.Context) (Status, error) {
	var st Status
	return st, c.do(ctx, http.MethodGet, "status", nil, &st)
}

// Trigger implements Service.Trigger.
func (c *Client) Trigger(ctx context.Context, controller string, objects []abi.Key, force bool) (Steered, error) {
	req := triggerRequest{Force: force}
	for _, key := range objects {
		req.Objects = append(req.Objects, key.String())
	}
	return post[Steered](ctx, c, controller, "trigger", req)
}

// Pause implements Service.Pause.
func (c *Client) Pause(ctx context.Context, controller string, paused bool) (Steered, error) {
	return c.pause(ctx, controller, pauseRequest{}, paused)
}

// PauseObject implements Service.PauseObject.
func (c *Client) PauseObject(ctx context.Context, controller string, object abi.Key, paused bool) error {
	_, err := c.pause(ctx, controller, pauseRequest{object.String()}, paused)
	return err
}

func (c *Client) pause(ctx context.Context, controller string, what pauseRequest, paused bool) (Steered, error) {
	verb := "resume"
	if paused {
		verb = "pause"
	}
	return post[Steered](ctx, c, controller, verb, what)
}

// Swap implements Service.Swap.
func (c *Client) Swap(ctx context.Context, controller string, wasm []byte, options SwapOptions) (Swapped, error) {
	var res Swapped
	err := c.send(ctx, http.MethodPost, "controllers/"+url.PathEscape(controller)+"/swap?"+options.query().Encode(), wasm, &res)
	return res, err
}

// Promote implements Service.Promote.
func (c *Client) Promote(ctx context.Context, controller string) (Swapped, error) {
	return post[Swapped](ctx, c, controller, "promote", struct{}{})
}

// Abort implements Service.Abort.
func (c *Client) Abort(ctx context.Context, controller string) (Swapped, error) {
	return post[Swapped](ctx, c, controller, "abort", struct{}{})
}

// Rollback implements Service.Rollback.
func (c *Client) Rollback(ctx context.Context, controller string, to uint64) (Swapped, error) {
	return post[Swapped](ctx, c, controller, "rollback", rollbackRequest{to})
}

// Configure implements Service.Configure.
func (c *Client) Configure(ctx context.Context, controller string, change map[string]*string) (int64, error) {
	res, err := post[configResponse](ctx, c, controller, "config", configRequest{change})
	return res.ConfigGen, err
}

// post sends a command to a controller.
func post[Res any](ctx context.Context, c *Client, controller, verb string, body any) (res Res, err error) {
	err = c.do(ctx, http.MethodPost, "controllers/"+url.PathEscape(controller)+"/"+verb, body, &res)
	return res, err
}

func (c *Client) do(ctx context.Context, method, path string, body, result any) error {
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return c.send(ctx, method, path, b, result)
}

// send is do with a raw body.
func (c *Client) send(ctx context.Context, method, path string, b []byte, result any) error {
	body, err := c.open(ctx, method, path, b)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	limited := &io.LimitedReader{R: body, N: c.most}
	err = json.NewDecoder(limited).Decode(result)
	if err != nil && limited.N == 0 {
		err = fmt.Errorf("it is larger than %s", humanize.Bytes(c.most))
	}
	if err != nil {
		return fmt.Errorf("%s: answer: %w", c.name, err)
	}
	return nil
}

// open sends a request and returns the body of the answer, which the caller must close.
func (c *Client) open(ctx context.Context, method, path string, b []byte) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://wasmctl/v1/"+path, bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	res, err := c.http.Do(req)
	if err != nil {
		if where, ok := errors.AsType[*url.Error](err); ok {
			err = where.Err // its URL is meaningless to users
		}
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
			return nil, failure.Cluster.Wrap(fmt.Errorf("%s: no process listens; omit --socket to find one: %w", c.name, err))
		}
		return nil, fmt.Errorf("%s: %w", c.name, err)
	}
	if res.StatusCode == http.StatusOK {
		return res.Body, nil
	}
	defer func() { _ = res.Body.Close() }()
	var e errorResponse
	if err := json.NewDecoder(io.LimitReader(res.Body, c.most)).Decode(&e); err != nil || e.Error == "" {
		return nil, fmt.Errorf("%s: %w", c.name, c.unserved(ctx, path, res))
	}
	if res.StatusCode == http.StatusNotFound {
		return nil, unknownError(e.Error)
	}
	return nil, e.err()
}

// unserved returns the error of an answer that no handler of the process has given.
func (c *Client) unserved(ctx context.Context, path string, res *http.Response) error {
	if res.StatusCode == http.StatusNotFound && path != "status" {
		if st, err := c.Status(ctx); err == nil {
			command, _, _ := strings.Cut(path[strings.LastIndex(path, "/")+1:], "?")
			return unknownPart(st.Version, command)
		}
	}
	return errors.New(res.Status)
}

// unknownError matches ErrUnknown and has the text of the process.
type unknownError string

func (e unknownError) Error() string { return string(e) }

// Is makes the error match ErrUnknown.
func (e unknownError) Is(target error) bool { return target == ErrUnknown }
