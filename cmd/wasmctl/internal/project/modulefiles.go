// SPDX-License-Identifier: Apache-2.0

package project

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// namespaceFile is the file in which a pod finds the name of its namespace.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// moduleFiles returns the files of the module, by their paths in it.
func moduleFiles(dir string, file File, o Options) (map[string][]byte, error) {
	from := map[string]string{}
	for path, f := range file.Files {
		from[path] = filepath.Join(dir, f)
	}
	for _, pair := range o.Files {
		path, f, ok := strings.Cut(pair, "=")
		if !ok || path == "" || f == "" {
			return nil, fmt.Errorf("files: want PATH=FILE, such as /etc/app/config.yaml=config.yaml, got %q", pair)
		}
		from[path] = f
	}
	files := map[string][]byte{}
	for _, path := range slices.Sorted(maps.Keys(from)) {
		text, err := os.ReadFile(from[path])
		if err != nil {
			return nil, fmt.Errorf("files[%s]: %w", path, err)
		}
		files[path] = text
	}
	namespace := cmp.Or(o.Namespace, file.Namespace)
	if namespace == "" {
		return files, nil
	}
	if problems := validation.IsDNS1123Label(namespace); len(problems) > 0 {
		return nil, fmt.Errorf("namespace[%s]: %s", namespace, strings.Join(problems, "; "))
	}
	files[namespaceFile] = []byte(namespace)
	return files, nil
}
