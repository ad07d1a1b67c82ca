// SPDX-License-Identifier: Apache-2.0

package devcluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// EnvBinary is the environment variable with the path of the devcluster program.
const EnvBinary = "WASMCTL_DEVCLUSTER"

// ErrNotFound is returned by Find, and by Start with an empty Config.Binary, if there is no devcluster program. Its text explains how to
// get one.
var ErrNotFound = errors.New("devcluster program not found: build it with 'make devcluster' " +
	"and put it beside this program or on PATH, or set " + EnvBinary + " to its path")

// Find returns the absolute path of the devcluster program: that in $WASMCTL_DEVCLUSTER, otherwise the one next to the running executable,
// otherwise the first on PATH. If the variable is set, the others are not tried.
func Find() (string, error) {
	if path := os.Getenv(EnvBinary); path != "" {
		if err := executable(path); err != nil {
			return "", fmt.Errorf("%s[%s]: %w", EnvBinary, path, err)
		}
		return filepath.Abs(path)
	}
	name := "devcluster"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	if self, err := os.Executable(); err == nil {
		dirs := []string{filepath.Dir(self)}
		if real, err := filepath.EvalSymlinks(self); err == nil {
			dirs = append(dirs, filepath.Dir(real))
		}
		for _, dir := range dirs {
			if path := filepath.Join(dir, name); executable(path) == nil {
				return path, nil
			}
		}
	}
	if path, err := exec.LookPath(name); err == nil {
		return filepath.Abs(path)
	}
	return "", ErrNotFound
}

// executable returns why path is not a program, or nil.
func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return errors.New("is a directory")
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o111 == 0:
		return errors.New("is not executable")
	}
	return nil
}
