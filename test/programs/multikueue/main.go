// MultiKueue's own controllers, as Kueue's manager sets them up, which find their workers by ClusterProfiles. Nothing
// here knows kcp but the name of the access provider.
package main

import (
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	inventory "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	configapi "sigs.k8s.io/kueue/apis/config/v1beta2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/controller/admissionchecks/multikueue"
	"sigs.k8s.io/kueue/pkg/features"
)

// Arguments: the namespace of the profiles, the plugin, and the plugin's arguments.
func main() {
	ctrl.SetLogger(zap.New())
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, kueue.AddToScheme, inventory.AddToScheme} {
		utilruntime.Must(add(scheme))
	}
	gates := map[string]bool{string(features.MultiKueueClusterProfile): true}
	utilruntime.Must(utilfeature.DefaultMutableFeatureGate.SetFromMap(gates))
	options := ctrl.Options{Scheme: scheme, Metrics: server.Options{BindAddress: "0"}}
	manager, err := ctrl.NewManager(ctrl.GetConfigOrDie(), options)
	utilruntime.Must(err)
	namespace, plugin := os.Args[1], clientcmdapi.ExecConfig{
		APIVersion:         "client.authentication.k8s.io/v1",
		Command:            os.Args[2],
		Args:               os.Args[3:],
		ProvideClusterInfo: true,
		InteractiveMode:    clientcmdapi.NeverExecInteractiveMode,
	}
	profiles := &configapi.ClusterProfile{
		CredentialsProviders: []configapi.ClusterProfileCredentialsProvider{{Name: "kcp", ExecConfig: plugin}},
	}
	ctx := ctrl.SetupSignalHandler()
	utilruntime.Must(multikueue.SetupIndexer(ctx, manager.GetFieldIndexer(), namespace))
	utilruntime.Must(multikueue.SetupControllers(manager, namespace, multikueue.WithClusterProfiles(profiles)))
	utilruntime.Must(manager.Start(ctx))
}
