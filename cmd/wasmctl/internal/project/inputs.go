// SPDX-License-Identifier: Apache-2.0

package project

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/project/operator"
)

// WriteInputs writes a project file for the operator in dir that lists its inputs as comments. It
// does not change a file that exists.
func WriteInputs(dir string, inputs []operator.Input) error {
	f, err := os.OpenFile(filepath.Join(dir, FileName), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("project[%s]: %s exists: edit it, or remove it before import --write", dir, FileName)
	}
	if err != nil {
		return fmt.Errorf("project[%s]: %w", dir, err)
	}
	_, err = f.Write(inputsFile(inputs))
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("project[%s]: %w", dir, err)
	}
	return nil
}

// inputsFile returns the content of a project file in which all inputs are comments.
func inputsFile(inputs []operator.Input) []byte {
	var b strings.Builder
	b.WriteString("# The input of the program's main function, which is part of the module. Remove a # to set a value.\n")
	for _, part := range []struct {
		kind operator.InputKind
		key  string
		line func(in operator.Input) string
	}{
		{operator.InputFlag, "args", func(in operator.Input) string { return "- " + strconv.Quote("--"+in.Name+"="+in.Default) }},
		{operator.InputFile, "files", func(in operator.Input) string { return in.Name + ": " + path.Base(in.Name) }},
		{operator.InputEnv, "env", func(in operator.Input) string { return in.Name + ": " + strconv.Quote(in.Default) }},
	} {
		header := "# " + part.key + ":\n"
		for _, in := range inputs {
			if in.Kind != part.kind {
				continue
			}
			_, _ = fmt.Fprintf(&b, "%s#   %s # %s:%d\n", header, part.line(in), in.File, in.Line)
			header = ""
		}
	}
	return []byte(b.String())
}
