// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Duration is a time such as 30s, 5m or 1h30m.
//
// +kubebuilder:validation:Type=string
// +kubebuilder:validation:MaxLength=32
// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
type Duration string

// Or returns the time, or otherwise if it is not valid.
func (d Duration) Or(otherwise time.Duration) time.Duration {
	if t, err := time.ParseDuration(string(d)); err == nil {
		return t
	}
	return otherwise
}

// Percent is a share of all objects, without its percent sign.
//
// +kubebuilder:validation:Type=integer
// +kubebuilder:validation:Format=int32
type Percent float64

// UnmarshalJSON parses a number, "10%", or "off", which is 0.
func (p *Percent) UnmarshalJSON(content []byte) error {
	text := strings.Trim(string(content), `"`)
	if text == CanaryOff {
		*p = 0
		return nil
	}
	number, ok := strings.CutSuffix(text, "%")
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || text != string(content) && !ok || !(v > 0 && v <= 100) {
		return fmt.Errorf("share %q: want more than 0%% and at most 100%%, such as 10%%", text)
	}
	*p = Percent(v)
	return nil
}

// CanaryOff is the text of a Percent for no share.
const CanaryOff = "off"

// Mode determines whether a module writes.
type Mode string

// The modes. ModeDryRunClient sends no writes to the API server at all; a Reconciler cannot
// have this mode.
const (
	ModeEnforce      Mode = "Enforce"
	ModeDryRun       Mode = "DryRun"
	ModeAudit        Mode = "Audit"
	ModeDryRunClient Mode = "DryRunClient"
)

// DeletionPolicy determines what happens to the finalizers of objects when their Reconciler is deleted.
type DeletionPolicy string

// The values of DeletionPolicy.
const (
	DeletionRelease DeletionPolicy = "Release"
	DeletionOrphan  DeletionPolicy = "Orphan"
)

// Reconcile selects the objects that are reconciled after a swap.
type Reconcile string

// The values of Reconcile. ReconcileChanged selects the objects that the swap can affect.
const (
	ReconcileAll     Reconcile = "all"
	ReconcileNone    Reconcile = "none"
	ReconcileChanged Reconcile = "changed"
)

// Values of HostSpec.
const (
	IsolateAlone     = "controller" // of Isolate: a process of its own
	MemoOff          = "off"        // of Memo: run all requests
	MemoMemory       = "memory"     // of Memo: remember until the process ends
	ShardByUID       = "uid"        // of ShardBy
	ShardByNamespace = "namespace"  // of ShardBy
)

// Kind is a kind of objects. As text, it has any form that kubectl accepts: without an
// APIVersion, Kind is that text.
type Kind struct {
	// APIVersion is the group and the version, "v1" for the core group.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	APIVersion string `json:"apiVersion"`
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
}

// KindOf returns the kind that a text names, or nil if it is empty.
func KindOf(text string) *Kind {
	if text == "" {
		return nil
	}
	i := max(0, strings.LastIndexByte(text, '/'))
	return &Kind{APIVersion: text[:i], Kind: strings.TrimPrefix(text[i:], "/")}
}

// String returns the kind as text. It may be called on a nil Kind.
func (k *Kind) String() string {
	switch {
	case k == nil:
		return ""
	case k.APIVersion == "":
		return k.Kind
	}
	return k.APIVersion + "/" + k.Kind
}

// UnmarshalJSON parses an object, or a kind as text.
func (k *Kind) UnmarshalJSON(content []byte) error {
	if text, ok := textIn(content); ok {
		if text == "" {
			return errors.New("want a kind, such as apps/v1/Deployment")
		}
		*k = *KindOf(text)
		return nil
	}
	type plain Kind
	return json.Unmarshal(content, (*plain)(k))
}

// Kinds returns kinds as text.
func Kinds(list []Kind) (all []string) {
	for i := range list {
		all = append(all, list[i].String())
	}
	return all
}

// Scheme is the prefix of a module in a registry, as text.
const Scheme = "oci://"

// ModuleOf returns the module that a text names: a file, or oci:// and an image.
func ModuleOf(text string) (m ControllerModule) {
	m.Set(text)
	return m
}

// Set replaces the module by the one that a text names. It does not change how the module
// is followed.
func (m *ControllerModule) Set(text string) {
	var isImage bool
	if m.File, m.Image = text, ""; strings.HasPrefix(text, Scheme) {
		m.Image, isImage = strings.CutPrefix(text, Scheme)
	}
	if isImage {
		m.File = ""
	}
}

// String returns the module as text.
func (m *ControllerModule) String() string {
	if m.Image != "" {
		return Scheme + m.Image
	}
	return m.File
}

// UnmarshalJSON parses an object, or a module as text.
func (m *ControllerModule) UnmarshalJSON(content []byte) error {
	if text, ok := textIn(content); ok {
		m.Set(text)
		return nil
	}
	type plain ControllerModule
	return json.Unmarshal(content, (*plain)(m))
}

// MarshalJSON encodes the module as text if it has no other fields.
func (m ControllerModule) MarshalJSON() ([]byte, error) {
	if reflect.DeepEqual(m, ModuleOf(m.String())) {
		return json.Marshal(m.String())
	}
	type plain ControllerModule
	return json.Marshal(plain(m))
}

// textIn returns the text of a JSON string.
func textIn(content []byte) (text string, ok bool) {
	return text, json.Unmarshal(content, &text) == nil && string(content) != "null"
}

// Config are settings of a module: strings, numbers, true or false.
type Config map[string]any

// UnmarshalJSON replaces the settings.
func (c *Config) UnmarshalJSON(content []byte) error {
	*c = nil
	return json.Unmarshal(content, (*map[string]any)(c))
}

// Texts returns the settings in the form that the module gets. It returns an error for a
// setting that is not a single value.
func (c Config) Texts() (map[string]string, error) {
	out := map[string]string{}
	for key, value := range c {
		switch v := value.(type) {
		case map[string]any, []any, nil:
			return nil, fmt.Errorf("%s: want a string, a number or true or false", key)
		case float64:
			out[key] = strconv.FormatFloat(v, 'g', -1, 64)
			if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
				out[key] = strconv.FormatFloat(v, 'f', -1, 64)
			}
		default:
			out[key] = strings.TrimSpace(fmt.Sprint(v))
		}
	}
	return out, nil
}
