// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"sigs.k8s.io/yaml"

	"github.com/wasmctl/wasmctl/host/strictjson"
)

// maxObjects limits the objects that main sees, in bytes: they are an argument of the linker.
const maxObjects = 64 << 10

// readObjects reads the objects that main sees before it starts the manager.
func readObjects(files []string) ([]json.RawMessage, error) {
	var all []json.RawMessage
	size := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("objects[%s]: %w", file, err)
		}
		for document := range documents(text) {
			object, err := readObject(document)
			if err != nil {
				return nil, fmt.Errorf("objects[%s]: %w", file, err)
			}
			if object != nil {
				all, size = append(all, object), size+len(object)
			}
		}
	}
	if size > maxObjects {
		return nil, fmt.Errorf("objects: have %d bytes, the limit is %d: name those only that main reads", size, maxObjects)
	}
	return all, nil
}

// readObject reads one object. It returns nil for an empty document.
func readObject(document string) (json.RawMessage, error) {
	text, err := yaml.YAMLToJSONStrict([]byte(document))
	if err != nil || string(text) == "null" {
		return nil, err
	}
	var o struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	switch err := strictjson.Unmarshal(text, &o); {
	case err != nil:
		return nil, err
	case o.APIVersion == "" || o.Kind == "" || o.Metadata.Name == "":
		return nil, errors.New("an object has no apiVersion, kind or name")
	case o.Kind == "Secret":
		return nil, fmt.Errorf("secret[%s]: would become part of the module, and everybody could read it: let Reconcile read it", o.Metadata.Name)
	}
	return text, nil
}
