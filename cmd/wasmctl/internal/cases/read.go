// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// ReadAll reads files, and the *.yaml files of directories.
func ReadAll(paths []string) ([]*File, error) {
	var files []*File
	for _, path := range paths {
		names := []string{path}
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			if names, err = filepath.Glob(filepath.Join(path, "*.yaml")); err != nil {
				return nil, err
			}
			if len(names) == 0 {
				return nil, fmt.Errorf("cases[%s]: %w: the directory has no *.yaml file", path, fs.ErrNotExist)
			}
		}
		for _, name := range names {
			f, err := Read(name)
			if err != nil {
				return nil, err
			}
			files = append(files, f)
		}
	}
	return files, nil
}

// ReadObjects reads all documents of a file.
func ReadObjects(path string) ([]map[string]any, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		if e, ok := errors.AsType[*fs.PathError](err); ok {
			err = e.Err // the prefix already has the path
		}
		return nil, err
	}
	docs, err := documents(b)
	if err != nil {
		return nil, err
	}
	var out []map[string]any
	for _, doc := range docs {
		var obj map[string]any
		js, err := yaml.YAMLToJSONStrict(doc)
		if err == nil {
			err = utiljson.Unmarshal(js, &obj)
		}
		if err != nil {
			return nil, err
		}
		if len(obj) > 0 {
			out = append(out, obj)
		}
	}
	if len(out) == 0 {
		return nil, errors.New("has no object")
	}
	return out, nil
}

// documents returns the documents of a file.
func documents(text []byte) (docs [][]byte, err error) {
	r := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		doc, err := r.Read()
		if errors.Is(err, io.EOF) {
			return docs, nil
		}
		if err != nil {
			return nil, err
		}
		docs = append(docs, doc)
	}
}
