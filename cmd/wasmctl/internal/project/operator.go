// SPDX-License-Identifier: Apache-2.0

package project

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/project/operator"
)

// operatorProject is a project on controller-runtime, for the standard toolchain.
type operatorProject struct {
	*operator.Project

	sdk   operator.SDK
	main  operator.Main
	flags GoFlags
}

// name implements builder.
func (p *operatorProject) name() string { return p.Name() }

// version implements builder.
func (p *operatorProject) version(ctx context.Context) (string, error) {
	return versionOf(ctx, &command{dir: p.Root, name: "go"}, getGo)
}

// compile implements builder.
func (p *operatorProject) compile(ctx context.Context, file string, stderr io.Writer) error {
	flags, err := p.flags.effective(ctx, p.Root)
	if err != nil {
		return err
	}
	p.Tags, p.LDFlags, p.Modules = flags.tags, flags.linker, flags.modules
	stage, err := p.Stage(ctx, filepath.Join(filepath.Dir(file), "stage"), p.sdk, stderr)
	if err != nil {
		return err
	}
	if stage.Hint != "" {
		_, _ = fmt.Fprintf(stderr, "wasmctl: %s\n", stage.Hint)
	}
	return stage.Build(ctx, file, p.main, goFlags, goLinker)
}

// endedEarly matches the error of a main that ended before it started the manager.
var endedEarly = regexp.MustCompile(`^exited with code|main: returned before`)

// helpMain adds to this error how to give main its input.
func helpMain(err error) error {
	if call, ok := errors.AsType[*abi.CallError](err); ok && endedEarly.MatchString(call.Err.Error()) {
		return fmt.Errorf("%w\nmain ended before it started the manager; give wasmctl build its input: its command and flags after \"--\", "+
			"its environment with --env, its files with --files and --namespace, and objects with --objects", err)
	}
	return err
}

// Check reports which parts of the operator in dir will work as a module, without building it. The
// error matches ErrNoProject if there is no operator, and ErrNoToolchain.
func Check(ctx context.Context, dir string, o Options) (*operator.Report, error) {
	if o.Stderr == nil {
		o.Stderr = io.Discard
	}
	if _, err := find(dir); err != nil {
		return nil, err
	}
	file, err := readFile(dir)
	if err != nil {
		return nil, err
	}
	b, _, err := choose(dir, Go, File{Roles: file.Roles, Limits: file.Limits, Controllers: file.Controllers}, o)
	if err != nil {
		return nil, err
	}
	p, ok := b.(*operatorProject)
	if !ok {
		return nil, fmt.Errorf("project[%s]: %w that uses controller-runtime", dir, ErrNoProject)
	}
	if _, err := p.version(ctx); err != nil {
		return nil, fmt.Errorf("project[%s]: %w", dir, err)
	}
	flags, err := p.flags.effective(ctx, p.Root)
	if err != nil {
		return nil, fmt.Errorf("project[%s]: %w", dir, err)
	}
	p.Tags, p.LDFlags, p.Modules = flags.tags, flags.linker, flags.modules
	r, err := p.Check(ctx, p.sdk, o.Stderr)
	if err != nil {
		return nil, fmt.Errorf("project[%s]: %w", dir, err)
	}
	return r, nil
}

// hasOperator reports whether dir has an operator whose main package is in a folder of its own.
func hasOperator(dir string) bool {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return false
	}
	p, err := operator.Find(abs)
	return err == nil && p != nil
}
