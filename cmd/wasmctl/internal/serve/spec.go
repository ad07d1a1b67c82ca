package serve

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wasmctl/wasmctl"
	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/flags"
	"github.com/wasmctl/wasmctl/cmd/wasmctl/internal/runfile"
	"github.com/wasmctl/wasmctl/host"
	"github.com/wasmctl/wasmctl/host/kubeapi"
	"github.com/wasmctl/wasmctl/host/kubeapi/grant"
	"github.com/wasmctl/wasmctl/internal/plan"
)

// Bounds are what no Reconciler may have more of.
type Bounds struct {
	Memory      int64 // of an instance, in bytes
	Timeout     time.Duration
	Concurrency int
}

// check returns an error where options are beyond the bounds: a Reconciler lowers the
// limits of the process, and raises none.
func (b Bounds) check(o *wasmctl.ControllerOptions) error {
	if o.Concurrency > b.Concurrency {
		return fmt.Errorf("spec.concurrency: %d is more than this process allows, %d", o.Concurrency, b.Concurrency)
	}
	most := host.Config{Limits: host.Limits{Memory: b.Memory, Timeout: b.Timeout}}.LimitsFor(nil)
	for _, name := range abi.LimitNames {
		if has, limit := o.Limits.Get(name), most.Get(name); limit > 0 && has > limit {
			return fmt.Errorf("spec.limits.%s: %s is more than this process allows, %s", name, host.LimitText(name, has), host.LimitText(name, limit))
		}
	}
	return nil
}

// reconciler is a Reconciler or a ClusterReconciler.
type reconciler struct {
	meta   metav1.ObjectMeta
	kind   string
	spec   v1alpha1.ClusterSpec // its Namespaces are empty for a Reconciler
	status v1alpha1.Status
}

func (r *reconciler) id() id {
	return id{r.kind, abi.Key{Namespace: r.meta.Namespace, Name: r.meta.Name}}
}

// home is the namespace of the service account, and of what the spec names.
func (r *reconciler) home() string { return cmp.Or(r.meta.Namespace, r.spec.ServiceAccountNamespace) }

// controller is what the controller is called. A ClusterReconciler's name has no
// dot: no two have the same.
func (r *reconciler) controller() string {
	if r.kind == v1alpha1.KindCluster {
		return r.meta.Name
	}
	return r.meta.Namespace + "." + r.meta.Name
}

// user is as whom all requests are sent.
func (r *reconciler) user(account string) string {
	return "system:serviceaccount:" + r.home() + ":" + cmp.Or(r.spec.ServiceAccountName, account, "default")
}

// requested is the value of the annotation by which somebody asks for a reconcile.
func (r *reconciler) requested() string {
	return cmp.Or(r.meta.Annotations[v1alpha1.RequestedAt], r.meta.Annotations[v1alpha1.FluxRequestedAt])
}

// options are those of the controller, but for its settings. They say nothing that
// the bounds do not allow.
func (r *reconciler) options(account string, most Bounds) (wasmctl.ControllerOptions, error) {
	o, err := flags.Of(r.values(most))
	if err != nil {
		return wasmctl.ControllerOptions{}, err
	}
	out, err := o.Options(&flags.Files{}, strings.NewReader(""), false)
	if err != nil {
		return out, err
	}
	if err := most.check(&out); err != nil {
		return out, err
	}
	out.As = r.user(account)
	if r.kind == v1alpha1.KindNamespaced {
		out.Confine = r.meta.Namespace
	}
	keys, err := keysOf(r.spec.Module.Verify)
	if err != nil {
		return out, err
	}
	out.SignedBy = keys.Fingerprints()
	out.Grant, err = r.grant()
	return out, err
}

// values are the flags of wasmctl run that say the same as the spec.
func (r *reconciler) values(most Bounds) runfile.Values {
	s, v := &r.spec, runfile.Values{}
	set := func(name, value string) {
		if value != "" {
			v[name] = []string{value}
		}
	}
	set("name", r.controller())
	set("controller", s.Module.Controller)
	set("memory", fmt.Sprint(most.Memory))
	set("timeout", most.Timeout.String())
	set("concurrency", fmt.Sprint(cmp.Or(int(s.Concurrency), min(4, most.Concurrency))))
	if s.For != nil {
		set("for", s.For.APIVersion+"/"+s.For.Kind)
	}
	for _, k := range s.Owns {
		v["owns"] = append(v["owns"], k.APIVersion+"/"+k.Kind)
	}
	v["namespace"] = s.Namespaces
	if r.kind == v1alpha1.KindNamespaced {
		v["namespace"] = []string{r.meta.Namespace}
	}
	set("selector", selector(s.Selector))
	set("field-selector", s.FieldSelector)
	v["predicate"], v["schedule"] = s.Predicates, s.Schedule
	if s.Resync != nil {
		set("resync", string(*s.Resync))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Limits)) {
		value := s.Limits[name]
		if slices.Contains([]string{"memory", "timeout", "fuel", "fuel-rate"}, name) {
			set(name, value.String())
		} else {
			v["limit"] = append(v["limit"], name+"="+value.String())
		}
	}
	if s.Mode == "DryRun" || s.Mode == modeAudit {
		set("dry-run", string(kubeapi.DryRunServer))
	}
	rollout(s.Rollout, set)
	if s.Rollout != nil && s.Rollout.Canary != nil {
		v["canary-namespace"] = s.Rollout.Canary.Namespaces
	}
	for name, list := range v {
		if len(list) == 0 {
			delete(v, name)
		}
	}
	return v
}

// rollout sets the flags that say how another module takes over.
func rollout(o *v1alpha1.Rollout, set func(name, value string)) {
	if o == nil {
		o = &v1alpha1.Rollout{}
	}
	set("allow-more-rights", fmt.Sprint(o.AllowMoreRights == nil || *o.AllowMoreRights)) // the grant is the limit
	set("reconcile-on-swap", o.Reconcile)
	switch {
	case o.AutoRollback != nil && !*o.AutoRollback:
		set("probation", "0s")
	case o.Probation != nil:
		set("probation", string(*o.Probation))
	}
	c := o.Canary
	if c == nil {
		return
	}
	if c.Percent > 0 {
		set("canary", fmt.Sprintf("%d%%", c.Percent))
	}
	set("canary-selector", selector(c.Selector))
	if c.Time != nil {
		set("canary-time", string(*c.Time))
	}
}

// selector is a label selector as flags have it.
func selector(s *metav1.LabelSelector) string {
	if s == nil {
		return ""
	}
	parsed, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return err.Error() // which is no selector
	}
	return parsed.String()
}

// grant is what the module may do.
func (r *reconciler) grant() (wasmctl.Grant, error) {
	g := r.spec.Grant
	switch {
	case r.spec.Mode == modeAudit:
		return wasmctl.Grant{Everything: true}, nil
	case g == nil:
		return wasmctl.Grant{}, nil
	case g.Manifest:
		return wasmctl.GrantManifest, nil
	}
	content, err := json.Marshal(struct { // read as a file is: with its checks
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		v1alpha1.Grant
	}{grant.APIVersion, grant.Kind, *g})
	if err != nil {
		return wasmctl.Grant{}, err
	}
	return wasmctl.ParseGrant("spec.grant", content)
}

// inSpec is a text about flags of wasmctl run as one about the spec.
func inSpec(text string) string {
	text = strings.ReplaceAll(text, plan.HowToGrant, "put rules that wasmctl grant MODULE prints into spec.grant.capabilities, or accept all that the module requests with spec.grant.manifest: true")
	return flagName.ReplaceAllStringFunc(text, func(flag string) string {
		if field := fields[flag]; field != "" {
			return "spec." + field
		}
		return flag
	})
}

var flagName = regexp.MustCompile(`--[a-z][a-z-]*`)

// fields are the fields of the spec for flags with names that differ too.
var fields = map[string]string{
	"--for": "for", "--owns": "owns", "--namespace": "namespaces", "--selector": "selector", "--field-selector": "fieldSelector",
	"--predicate": "predicates", "--schedule": "schedule", "--resync": "resync", "--config": "config", "--config-file": "configFrom",
	"--grant": "grant", "--grant-manifest": "grant.manifest", "--limit": "limits", "--memory": "limits.memory", "--timeout": "limits.timeout",
	"--fuel": "limits.fuel", "--fuel-rate": "limits.fuel-rate", "--concurrency": "concurrency", "--as": "serviceAccountName",
	"--canary": "rollout.canary", "--probation": "rollout.probation", "--allow-more-rights": "rollout.allowMoreRights",
}
