// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/internal/text"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

// conditions sets the conditions by the rules of kstatus and Flux: Ready is always present, Reconciling
// and Stalled only while they are true.
func conditions(st *v1alpha1.Status, in *seen, s state, now time.Time) {
	set := func(name string, ok metav1.ConditionStatus, reason, message string) {
		meta.SetStatusCondition(&st.Conditions, metav1.Condition{
			Type: name, Status: ok, Reason: reason, Message: short(message), ObservedGeneration: in.generation, LastTransitionTime: metav1.NewTime(now),
		})
	}
	is := func(name string, ok bool, reason, message string) {
		status := metav1.ConditionFalse
		if ok {
			status = metav1.ConditionTrue
		}
		set(name, status, reason, message)
	}
	is(v1alpha1.Ready, s.ready, s.reason, s.message)
	for name, there := range map[string]bool{v1alpha1.Reconciling: s.reconciling, v1alpha1.Stalled: s.stalled} {
		if there {
			is(name, true, s.reason, s.message)
		} else {
			meta.RemoveStatusCondition(&st.Conditions, name)
		}
	}
	for _, name := range []string{v1alpha1.ModuleFetched, v1alpha1.ModuleVerified, v1alpha1.Granted, v1alpha1.KindServed, v1alpha1.CachesSynced, v1alpha1.Healthy, v1alpha1.Covered, v1alpha1.WebhooksRegistered} {
		ok, reason, message := part(name, st, in)
		if ok == "" {
			meta.RemoveStatusCondition(&st.Conditions, name)
			continue
		}
		set(name, ok, reason, message)
	}
}

// part returns the condition of this name, about a part of the work. If nothing is known about that
// part, the status is "".
func part(name string, st *v1alpha1.Status, in *seen) (ok metav1.ConditionStatus, reason, message string) {
	if p := in.problem; p != nil && p.condition == name {
		return metav1.ConditionFalse, p.reason, p.message
	}
	c := in.controller
	runs := c != nil && c.Phase == admin.PhaseRunning
	switch name {
	case v1alpha1.ModuleFetched:
		if in.wanted != nil {
			message := cmp.Or(in.wanted.Image, in.wanted.Version)
			if in.insecure != "" {
				message += "; without verified TLS of " + in.insecure
			}
			return metav1.ConditionTrue, "Succeeded", message
		}
	case v1alpha1.ModuleVerified:
		if in.verified {
			return metav1.ConditionTrue, "Succeeded", "signed as spec.module.verify requires"
		}
	case v1alpha1.Granted:
		if runs {
			return granted(c.MissingRights)
		}
	case v1alpha1.KindServed:
		if c != nil && c.Phase == admin.PhaseWaiting {
			return metav1.ConditionFalse, "WaitingForKind", c.Message
		}
		if runs {
			return metav1.ConditionTrue, "Succeeded", c.Kind
		}
	case v1alpha1.CachesSynced:
		if runs {
			if reason, message := unsynced(c.Watches); reason != "" {
				return metav1.ConditionFalse, reason, message
			}
			return metav1.ConditionTrue, "Succeeded", fmt.Sprintf("watches: %d", len(c.Watches))
		}
	case v1alpha1.Healthy:
		switch {
		case !runs:
		case c.Quarantined > 0:
			return metav1.ConditionFalse, "ObjectsQuarantined", "see wasmctl status"
		case c.Failing > 0 && st.Objects != nil && st.Objects.Failing > 0:
			return metav1.ConditionFalse, "ObjectsFailing", "see wasmctl status"
		default:
			return metav1.ConditionTrue, "Succeeded", "no object keeps failing"
		}
	case v1alpha1.Covered:
		if in.uncovered != "" {
			return metav1.ConditionFalse, "SlotsNotCovered", in.uncovered + "; see wasmctl status --all-replicas"
		}
		if in.shared {
			return metav1.ConditionTrue, "Succeeded", "each slot is run by one replica, or is on its way to one"
		}
	case v1alpha1.WebhooksRegistered:
		if runs {
			return registered(c.Webhooks)
		}
	}
	return "", "", ""
}

// unsynced returns why watches are not ready, or "" if all are: first the causes that only a person can change.
func unsynced(watches []admin.Watch) (reason, message string) {
	for _, w := range watches {
		if w.Phase == "ready" || reason != "" && w.Phase != "denied" && w.Phase != "refused" {
			continue
		}
		message = strings.TrimSuffix(w.Source+" is "+w.Phase+": "+w.Message, ": ")
		switch w.Phase {
		case "denied":
			return "RightsMissing", message
		case "refused":
			return "CacheRefused", message
		}
		reason = "CachesSyncing"
	}
	return reason, message
}

// registered returns the condition WebhooksRegistered, or nothing for a module without webhooks. Its message has no times, so it changes
// rarely.
func registered(webhooks []admin.Webhook) (ok metav1.ConditionStatus, reason, message string) {
	if len(webhooks) == 0 {
		return "", "", ""
	}
	ok, reason = metav1.ConditionTrue, "Succeeded"
	var list, others []string
	for i := range webhooks {
		switch w := &webhooks[i]; {
		case w.Missing():
			ok, reason = metav1.ConditionFalse, "NotRegistered"
			others = append(others, fmt.Sprintf("%s %s is not registered: %s", w.Type, w.Name, w.Message))
		case w.Message != "":
			others = append(others, fmt.Sprintf("%s %s: %s", w.Type, w.Name, w.Message))
		default:
			list = append(list, w.Type+" "+w.Name)
		}
	}
	if len(list) > 0 {
		others = append(others, "registered: "+strings.Join(list, ", "))
	}
	return ok, reason, strings.Join(others, "; ")
}

// granted returns the condition Granted: it lists the rights that a module has requested but does not have.
func granted(rights []admin.MissingRight) (ok metav1.ConditionStatus, reason, message string) {
	if len(rights) == 0 {
		return metav1.ConditionTrue, "Succeeded", "no request was denied"
	}
	list := make([]string, 0, len(rights))
	for _, r := range rights {
		list = append(list, strings.TrimSuffix(string(r.Rule)+" ("+r.Missing+"): "+r.Message, ": "))
	}
	return metav1.ConditionFalse, "RightsMissing", "missing rights: " + strings.Join(list, "; ")
}

// short truncates a message.
func short(s string) string { return text.Clip(s, maxMessage-len("...")) }
