// A controller as its author would write it for kcp, with kcp's own provider for multicluster-runtime: nothing in this
// program knows our server. The controller engages each logical cluster that binds the export and works on claimed
// ConfigMaps and on exported Widgets there.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/kcp-dev/multicluster-provider/apiexport"
	"github.com/kcp-dev/multicluster-provider/pkg/handlers"
	apisv1alpha1 "github.com/kcp-dev/sdk/apis/apis/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	mcbuilder "sigs.k8s.io/multicluster-runtime/pkg/builder"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"
)

var widget = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}

func main() {
	endpointSlice := os.Args[1]
	log.SetLogger(zap.New(zap.UseDevMode(true)))
	if err := run(endpointSlice); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(endpointSlice string) error {
	runtime.Must(apisv1alpha1.AddToScheme(scheme.Scheme))
	cfg, err := config.GetConfig()
	if err != nil {
		return err
	}
	provider, err := apiexport.New(cfg, endpointSlice, apiexport.Options{Handlers: handlers.Handlers{tell{}}})
	if err != nil {
		return err
	}
	mgr, err := mcmanager.New(cfg, provider, manager.Options{Metrics: server.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	answer := func(kind schema.GroupVersionKind, value func(object *unstructured.Unstructured) error) mcreconcile.Func {
		return func(ctx context.Context, req mcreconcile.Request) (ctrl.Result, error) {
			cluster, err := mgr.GetCluster(ctx, req.ClusterName)
			if err != nil {
				return ctrl.Result{}, fmt.Errorf("failed to get cluster: %w", err)
			}
			object := &unstructured.Unstructured{}
			object.SetGroupVersionKind(kind)
			if err := cluster.GetClient().Get(ctx, req.NamespacedName, object); err != nil {
				return ctrl.Result{}, client.IgnoreNotFound(err)
			}
			if object.GetName() == "kube-root-ca.crt" {
				// The server would restore it at once, and so on without an end.
				return ctrl.Result{}, nil
			}
			before := object.DeepCopy()
			if err := value(object); err != nil {
				return ctrl.Result{}, err
			}
			if err := cluster.GetClient().Patch(ctx, object, client.MergeFrom(before)); err != nil {
				if apierrors.IsNotFound(err) {
					return ctrl.Result{}, nil
				}
				return ctrl.Result{}, err
			}
			fmt.Printf("reconciled %s %s %s\n", kind.Kind, req.ClusterName, req.NamespacedName)
			recorder := cluster.GetEventRecorder("kcp-example")
			recorder.Eventf(object, nil, corev1.EventTypeNormal, "Reconciled", "Reconcile", "%s reconciled", object.GetName())
			return ctrl.Result{}, nil
		}
	}
	configMaps := corev1.SchemeGroupVersion.WithKind("ConfigMap")
	if err := mcbuilder.ControllerManagedBy(mgr).Named("configmaps").For(&corev1.ConfigMap{}).
		Complete(answer(configMaps, func(object *unstructured.Unstructured) error {
			return unstructured.SetNestedField(object.Object, "seen", "data", "answer")
		})); err != nil {
		return err
	}
	widgets := &unstructured.Unstructured{}
	widgets.SetGroupVersionKind(widget)
	if err := mcbuilder.ControllerManagedBy(mgr).Named("widgets").For(widgets).
		Complete(answer(widget, func(object *unstructured.Unstructured) error {
			size, _, err := unstructured.NestedInt64(object.Object, "spec", "size")
			if err != nil {
				return err
			}
			return unstructured.SetNestedField(object.Object, size*2, "spec", "doubled")
		})); err != nil {
		return err
	}
	return mgr.Start(ctrl.SetupSignalHandler())
}

// tell prints which logical clusters come and go.
type tell struct{}

func (tell) OnAdd(object client.Object)       { fmt.Printf("bound %s\n", clusterOf(object)) }
func (tell) OnUpdate(_, object client.Object) {}
func (tell) OnDelete(object client.Object)    { fmt.Printf("unbound %s\n", clusterOf(object)) }

func clusterOf(object client.Object) string { return object.GetAnnotations()["kcp.io/cluster"] }
