package main

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	managerGroup   = "manager.test.dev"
	widgetReleased = "manager.test.dev/released"
)

// Widget is the Go type of widgetDefinition, in the style of controllers.
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              WidgetSpec   `json:"spec"`
	Status            WidgetStatus `json:"status,omitempty"`
}

// WidgetSpec is the desired state.
type WidgetSpec struct {
	Colour   string `json:"colour"`
	Replicas int32  `json:"replicas,omitempty"`
}

// WidgetStatus is the observed state.
type WidgetStatus struct {
	Ready              bool  `json:"ready,omitempty"`
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
}

// DeepCopyObject makes it a runtime.Object.
func (w *Widget) DeepCopyObject() runtime.Object {
	copied := *w
	copied.ObjectMeta = *w.ObjectMeta.DeepCopy()
	return &copied
}

// WidgetList is a list of Widgets.
type WidgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Widget `json:"items"`
}

// DeepCopyObject makes it a runtime.Object.
func (l *WidgetList) DeepCopyObject() runtime.Object {
	copied := *l
	copied.Items = nil
	for i := range l.Items {
		copied.Items = append(copied.Items, *l.Items[i].DeepCopyObject().(*Widget))
	}
	return &copied
}

// widgetReconciler keeps a ConfigMap per Widget with its colour, a status, and a finalizer.
type widgetReconciler struct{ client.Client }

func (r *widgetReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	widget := &Widget{}
	if err := r.Get(ctx, request.NamespacedName, widget); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !widget.DeletionTimestamp.IsZero() {
		if controllerutil.RemoveFinalizer(widget, widgetReleased) {
			return ctrl.Result{}, r.Update(ctx, widget)
		}
		return ctrl.Result{}, nil
	}
	if controllerutil.AddFinalizer(widget, widgetReleased) {
		return ctrl.Result{}, r.Update(ctx, widget)
	}
	owned := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: widget.Namespace, Name: widget.Name}}
	if _, err := controllerutil.CreateOrUpdate(ctx, r.Client, owned, func() error {
		owned.Data = map[string]string{"colour": widget.Spec.Colour}
		return controllerutil.SetControllerReference(widget, owned, r.Scheme())
	}); err != nil {
		return ctrl.Result{}, err
	}
	before := widget.DeepCopyObject().(*Widget)
	widget.Status = WidgetStatus{Ready: true, ObservedGeneration: widget.Generation}
	return ctrl.Result{}, r.Status().Patch(ctx, widget, client.MergeFrom(before))
}

// manager runs a controller-runtime manager with leader election over a custom resource and the objects it owns.
func manager(ctx context.Context, config *rest.Config, seen *recorder) error {
	ctrl.SetLogger(logr.Discard())
	custom, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	if _, err := newWidgets(ctx, custom, managerGroup); err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return err
	}
	version := schema.GroupVersion{Group: managerGroup, Version: "v1"}
	scheme.AddKnownTypes(version, &Widget{}, &WidgetList{})
	metav1.AddToGroupVersion(scheme, version)

	running, stop := context.WithCancel(ctx)
	defer stop()
	created, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:                        scheme,
		LeaderElection:                true,
		LeaderElectionID:              "widgets",
		LeaderElectionNamespace:       "default",
		LeaderElectionReleaseOnCancel: true,
		Metrics:                       metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress:        "0",
	})
	if err != nil {
		return err
	}
	if err := ctrl.NewControllerManagedBy(created).For(&Widget{}).Owns(&corev1.ConfigMap{}).
		Complete(&widgetReconciler{created.GetClient()}); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- created.Start(running) }()
	reader := created.GetAPIReader()
	key := client.ObjectKey{Namespace: "default", Name: "w"}
	colourIs := func(colour string) func() bool {
		return func() bool {
			owned := &corev1.ConfigMap{}
			return reader.Get(ctx, key, owned) == nil && owned.Data["colour"] == colour && metav1.IsControlledBy(owned, current(ctx, reader, key))
		}
	}
	return all(
		step{"leads", func() error {
			select {
			case <-created.Elected():
				return nil
			case err := <-ended:
				return fmt.Errorf("the manager ended: %v", err)
			case <-ctx.Done():
				return ctx.Err()
			}
		}},
		step{"reconciles what comes", func() error {
			widget := &Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "w"}, Spec: WidgetSpec{Colour: "red"}}
			if err := created.GetClient().Create(ctx, widget); err != nil {
				return err
			}
			return until(ctx, "the ConfigMap", colourIs("red"))
		}},
		step{"writes status", func() error {
			return until(ctx, "the status", func() bool { return current(ctx, reader, key).Status.Ready })
		}},
		step{"reconciles what changes", func() error {
			widget := current(ctx, reader, key)
			patch := client.MergeFrom(widget.DeepCopyObject().(*Widget))
			widget.Spec.Colour = "green"
			if err := created.GetClient().Patch(ctx, widget, patch); err != nil {
				return err
			}
			return until(ctx, "the change", colourIs("green"))
		}},
		step{"brings back what it owns", func() error {
			if err := created.GetClient().Delete(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "w"}}); err != nil {
				return err
			}
			return until(ctx, "the ConfigMap to be there again", colourIs("green"))
		}},
		step{"lets go, and what it owned is collected", func() error {
			if err := created.GetClient().Delete(ctx, current(ctx, reader, key)); err != nil {
				return err
			}
			return until(ctx, "both to be gone", func() bool {
				return apierrors.IsNotFound(reader.Get(ctx, key, &Widget{})) && apierrors.IsNotFound(reader.Get(ctx, key, &corev1.ConfigMap{}))
			})
		}},
		step{"stops cleanly", func() error {
			stop()
			select {
			case err := <-ended:
				return err
			case <-ctx.Done():
				return ctx.Err()
			}
		}},
		step{"ConfigMaps went as protobuf", func() error {
			sent := seen.count(func(q request) bool { return q.method == "POST" && isProtobuf(q) })
			return want(sent > 0, "none")
		}},
	)
}

func current(ctx context.Context, reader client.Reader, key client.ObjectKey) *Widget {
	widget := &Widget{}
	_ = reader.Get(ctx, key, widget)
	return widget
}
