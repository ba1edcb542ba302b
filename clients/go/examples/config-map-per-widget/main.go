// Keeps a ConfigMap with the size of each Widget, in all logical clusters of an installation: the twin of
// examples/config-map-per-widget.ts. Run it with KUBECONFIG of the installation's admin; as the provider of an
// APIExport: VIEW=URL.
package main

import (
	"context"
	"os"
	"strconv"

	"kcp.dev/clients/go/provider"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	metav1apply "k8s.io/client-go/applyconfigurations/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	builder "sigs.k8s.io/multicluster-runtime/pkg/builder"
	manager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	reconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"
)

func main() {
	ctrl.SetLogger(zap.New())
	config := ctrl.GetConfigOrDie()
	clusters := must(provider.New(config, provider.Options{View: os.Getenv("VIEW"), ShardSelector: os.Getenv("SHARD")}))
	mgr := must(manager.New(config, clusters, ctrl.Options{Metrics: server.Options{BindAddress: "0"}}))
	widgets := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Widget"}}
	must(0, builder.ControllerManagedBy(mgr).Named("widgets").For(widgets).Owns(&corev1.ConfigMap{}).
		Complete(reconcile.Func(func(ctx context.Context, request reconcile.Request) (ctrl.Result, error) {
			cluster, err := mgr.GetCluster(ctx, request.ClusterName)
			if err != nil {
				return ctrl.Result{}, err
			}
			widget := widgets.DeepCopy()
			if err := cluster.GetClient().Get(ctx, request.NamespacedName, widget); err != nil || widget.GetDeletionTimestamp() != nil {
				return ctrl.Result{}, client.IgnoreNotFound(err)
			}
			size, _, _ := unstructured.NestedInt64(widget.Object, "spec", "size")
			known := &corev1.ConfigMap{}
			if err := cluster.GetClient().Get(ctx, request.NamespacedName, known); client.IgnoreNotFound(err) != nil ||
				known.Data["size"] == strconv.FormatInt(size, 10) {
				return ctrl.Result{}, client.IgnoreNotFound(err)
			}
			owner := metav1apply.OwnerReference().WithAPIVersion(widget.GetAPIVersion()).WithKind(widget.GetKind()).
				WithName(widget.GetName()).WithUID(widget.GetUID()).WithController(true)
			wanted := corev1apply.ConfigMap(request.Name, request.Namespace).WithLabels(map[string]string{"widget": request.Name}).
				WithOwnerReferences(owner).WithData(map[string]string{"size": strconv.FormatInt(size, 10)})
			return ctrl.Result{}, cluster.GetClient().Apply(ctx, wanted, client.FieldOwner("widgets"), client.ForceOwnership)
		})))
	must(0, mgr.Start(ctrl.SetupSignalHandler()))
}

func must[T any](made T, err error) T {
	if err != nil {
		panic(err)
	}
	return made
}
