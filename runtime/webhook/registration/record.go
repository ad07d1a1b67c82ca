// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/wasmctl/wasmctl/runtime/webhook/certs"
)

const (
	// heartbeat is how often a replica confirms that it runs.
	heartbeat = 5 * time.Minute
	// silence is how long a replica may be silent until it counts as gone.
	silence = 3 * heartbeat
)

// member is the entry of a replica in the record.
type member struct {
	// Seen is when the replica wrote the entry.
	Seen time.Time `json:"seen"`
	// Certificates are those that clients must trust, as PEM; empty if they are not the replica's own.
	Certificates string `json:"certificates,omitempty"`
}

// record is the ConfigMap in which the replicas of a group publish their certificates. Each has one key, and is its field manager.
type record struct {
	client  dynamic.ResourceInterface
	name    string
	replica string
}

// manager returns the field manager of the entry. Its length is limited to 128 bytes; the end of the name of a pod is its unique part.
func (r *record) manager() string {
	return fieldManager + "-" + r.replica[max(0, len(r.replica)-100):]
}

// equal reports whether two entries are the same.
func (m member) equal(other member) bool {
	return m.Seen.Equal(other.Seen) && m.Certificates == other.Certificates
}

// publish writes the entry of this replica.
func (r *record) publish(ctx context.Context, m member) error {
	text, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("ConfigMap[%s]: %w", r.name, err)
	}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": r.name},
		"data": map[string]any{r.replica: string(text)},
	}}
	_, err = r.client.Apply(ctx, r.name, object, metav1.ApplyOptions{FieldManager: r.manager(), Force: true})
	if err != nil {
		return fmt.Errorf("ConfigMap[%s]: publish the certificate: %w", r.name, err)
	}
	return nil
}

// read returns the entries, by replica. It skips those that it does not understand.
func (r *record) read(ctx context.Context) (map[string]member, error) {
	object, err := r.client.Get(ctx, r.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("ConfigMap[%s]: read the certificates: %w", r.name, err)
	}
	data, _, _ := unstructured.NestedStringMap(object.Object, "data")
	members := map[string]member{}
	for replica, text := range data {
		var m member
		if json.Unmarshal([]byte(text), &m) == nil {
			members[replica] = m
		}
	}
	return members, nil
}

// remove removes the entries of replicas.
func (r *record) remove(ctx context.Context, replicas ...string) error {
	data := map[string]any{}
	for _, name := range replicas {
		data[name] = nil
	}
	patch, err := json.Marshal(map[string]any{"data": data})
	if err != nil {
		return fmt.Errorf("ConfigMap[%s]: %w", r.name, err)
	}
	_, err = r.client.Patch(ctx, r.name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("ConfigMap[%s]: remove entries: %w", r.name, err)
	}
	return nil
}

// end deletes the record. A replica that starts meanwhile publishes its entry again.
func (r *record) end(ctx context.Context) error {
	if err := r.client.Delete(ctx, r.name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("ConfigMap[%s]: delete: %w", r.name, err)
	}
	return nil
}

// gone returns the replicas whose entries are of no use any more: they have been silent, and their certificates have expired.
func gone(members map[string]member, now time.Time) (list []string) {
	for name, m := range members {
		if now.Sub(m.Seen) > silence && certs.Expired(now, []byte(m.Certificates)) {
			list = append(list, name)
		}
	}
	return list
}

// others reports whether other replicas run.
func others(members map[string]member, replica string, now time.Time) bool {
	for name, m := range members {
		if name != replica && now.Sub(m.Seen) <= silence {
			return true
		}
	}
	return false
}

var configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")
