// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// rightsServer permits requests while it has all rights. A request removes one of them.
type rightsServer struct {
	refuses string // a right that cannot be removed

	mu   sync.Mutex
	left map[string]bool // guarded by mu
}

func (s *rightsServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	s.mu.Lock()
	permitted := len(s.left) == 3 && name != s.refuses
	s.mu.Unlock()
	if !permitted {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	if _, err := io.ReadAll(r.Body); err != nil {
		return
	}
	s.mu.Lock()
	delete(s.left, name)
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"apiVersion":"v1","kind":"ClusterRole","metadata":{"name":%q}}`, name)
}

// TestTogether_RequestsThatEndTheRightsOfEachOther: all requests take effect, although each ends the rights of the others. If one is refused,
// none takes effect.
func TestTogether_RequestsThatEndTheRightsOfEachOther(t *testing.T) {
	for _, refuses := range []string{"", "right-0", "right-2"} {
		s := &rightsServer{refuses: refuses, left: map[string]bool{"right-0": true, "right-1": true, "right-2": true}}
		server := httptest.NewServer(s)
		err := together(t.Context(), &rest.Config{Host: server.URL}, 3, func(ctx context.Context, client dynamic.Interface, i int) error {
			_, err := client.Resource(clusterRoles).Patch(ctx, fmt.Sprint("right-", i), types.MergePatchType, []byte(`{}`), metav1.PatchOptions{})
			return err
		})
		server.Close() // waits for the requests
		if want := map[bool]int{true: 0, false: 3}[refuses == ""]; len(s.left) != want {
			t.Errorf("refused: %q: %d are left, want %d: %v", refuses, len(s.left), want, err)
		}
		if (err != nil) != (refuses != "") || err != nil && !apierrors.IsForbidden(err) {
			t.Errorf("refused: %q: %v", refuses, err)
		}
	}
}
