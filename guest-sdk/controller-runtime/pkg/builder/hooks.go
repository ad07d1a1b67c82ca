// SPDX-License-Identifier: Apache-2.0

package builder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/internal/program"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"
)

// hooks are the webhooks of a type.
type hooks struct {
	mgr    manager.Manager
	object runtime.Object

	defaulter, validator         func() *admission.Webhook // nil for none
	defaulterPath, validatorPath string                    // paths that the program chooses
	converter                    func(*runtime.Scheme) (conversion.Converter, error)

	logger  func(base logr.Logger, req *admission.Request) logr.Logger
	context func(context.Context, *http.Request) context.Context
	err     error // the first mistake
}

// setDefaulter sets the defaulter; more than one is a mistake.
func (h *hooks) setDefaulter(f func() *admission.Webhook) {
	if h.defaulter != nil {
		h.err = cmp.Or(h.err, errors.New("builder: the webhook has two defaulters; remove one"))
	}
	h.defaulter = f
}

// setValidator sets the validator; more than one is a mistake.
func (h *hooks) setValidator(f func() *admission.Webhook) {
	if h.validator != nil {
		h.err = cmp.Or(h.err, errors.New("builder: the webhook has two validators; remove one"))
	}
	h.validator = f
}

// complete registers the webhooks with the server of the manager.
func (h *hooks) complete() error {
	if program.Without(program.Webhooks) {
		logf.Log.Info("webhook: the module is built without webhooks", "type", fmt.Sprintf("%T", h.object))
		return nil
	}
	if h.object == nil {
		return errors.New("builder: the webhook has no type; pass an object to NewWebhookManagedBy or For")
	}
	gvk, err := apiutil.GVKForObject(h.object, h.mgr.GetScheme())
	if err == nil {
		err = h.err
	}
	if err != nil {
		return err
	}
	for _, hook := range []struct {
		of           func() *admission.Webhook
		prefix, path string
	}{{h.defaulter, "/mutate-", h.defaulterPath}, {h.validator, "/validate-", h.validatorPath}} {
		if hook.of == nil {
			continue
		}
		path := cmp.Or(hook.path, hook.prefix+strings.ReplaceAll(gvk.Group, ".", "-")+"-"+gvk.Version+"-"+strings.ToLower(gvk.Kind))
		if err := h.register(path, hook.of(), gvk); err != nil {
			return err
		}
	}
	return h.convert(gvk.GroupKind())
}

// isPath matches the paths that a program can choose.
var isPath = regexp.MustCompile(`^((/[a-zA-Z0-9-_]+)+|/)$`)

func (h *hooks) register(path string, hook *admission.Webhook, gvk schema.GroupVersionKind) error {
	if !isPath.MatchString(path) {
		return fmt.Errorf("builder: webhook for %T: %q is not a path such as /validate-apps-v1-deployment", h.object, path)
	}
	hook.WithContextFunc, hook.LogConstructor = h.context, h.logger
	if hook.LogConstructor == nil {
		hook.LogConstructor = logsKind(gvk)
	}
	if h.registered(path) == nil {
		h.mgr.GetWebhookServer().Register(path, hook)
	}
	return nil
}

// logsKind returns a function that adds the kind and the request to the logger.
func logsKind(gvk schema.GroupVersionKind) func(logr.Logger, *admission.Request) logr.Logger {
	return func(base logr.Logger, req *admission.Request) logr.Logger {
		base = base.WithValues("webhookGroup", gvk.Group, "webhookKind", gvk.Kind)
		if req != nil {
			base = base.WithValues(gvk.Kind, klog.KRef(req.Namespace, req.Name))
		}
		return admission.DefaultLogConstructor(base, req)
	}
}

// registered returns the webhook with the path, or nil.
func (h *hooks) registered(path string) http.Handler {
	mux := h.mgr.GetWebhookServer().WebhookMux()
	if mux == nil {
		return nil
	}
	hook, pattern := mux.Handler(&http.Request{URL: &url.URL{Path: path}})
	if pattern != path {
		return nil
	}
	return hook
}

const convertPath = "/convert"

// convert adds the kind to the conversion webhook if its versions convert.
func (h *hooks) convert(gk schema.GroupKind) error {
	scheme := h.mgr.GetScheme()
	if h.converter != nil {
		c, err := h.converter(scheme)
		if err == nil {
			err = h.mgr.GetConverterRegistry().RegisterConverter(gk, c)
		}
		if err != nil {
			return err
		}
	} else if ok, err := conversion.IsConvertible(scheme, h.object); err != nil || !ok {
		return err
	}
	if h.registered(convertPath) == nil {
		h.mgr.GetWebhookServer().Register(convertPath, conversion.NewWebhookHandler(scheme, h.mgr.GetConverterRegistry()))
	}
	if w, ok := h.registered(convertPath).(*conversion.Webhook); ok {
		w.Serve(gk)
	}
	return nil
}
