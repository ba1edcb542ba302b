// Package provider makes the logical clusters of a kcp installation, or the consumers of an APIExport, clusters of
// sigs.k8s.io/multicluster-runtime. All of them share one list and one watch per kind.
package provider

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/multicluster-runtime/pkg/clusters"
	"sigs.k8s.io/multicluster-runtime/pkg/multicluster"
)

// ClusterAnnotation is on each object that is read over all logical clusters: the name of its logical cluster.
const ClusterAnnotation = "kcp.dev/logical-cluster"

var (
	logicalClusters = schema.GroupVersionResource{Group: "kcp.dev", Version: "v1alpha1", Resource: "logicalclusters"}
	apiBindings     = schema.GroupVersionResource{Group: "apis.kcp.io", Version: "v1alpha1", Resource: "apibindings"}
)

// Options of a provider.
type Options struct {
	// Scheme of the objects; default: that of client-go.
	Scheme *runtime.Scheme
	// View is the URL of the view of an APIExport (status.endpoints[].url of its APIExportEndpointSlice). The clusters
	// are then the logical clusters that bind the export. Empty: all logical clusters of the installation.
	View string
	// Registry leads to the API that has the LogicalCluster objects; default: logical cluster root. With a host, give
	// the configuration of the host. Not used with a View.
	Registry *rest.Config
	// ShardSelector selects a part of all objects, as in Kubernetes 1.36. Divided by object.metadata.logicalCluster,
	// each consumer has all objects of its logical clusters; it engages the others, too, and sees nothing there.
	ShardSelector string
}

// Provider implements multicluster.Provider.
type Provider struct {
	clusters.Clusters[cluster.Cluster]

	options Options
	// config leads to the whole server or to the view, without the path of a logical cluster.
	config  *rest.Config
	http    *http.Client
	objects *sharedObjects
	aware   multicluster.Aware

	lock sync.Mutex
	// engaged has the uid of the object that announced each engaged cluster.
	engaged map[multicluster.ClusterName]types.UID
}

var (
	_ multicluster.Provider         = &Provider{}
	_ multicluster.ProviderRunnable = &Provider{}
)

// New returns a provider with the identity of config, which must be allowed to read over all logical clusters, or to
// use the view. The path of a logical cluster in config.Host is dropped.
func New(config *rest.Config, options Options) (*Provider, error) {
	if options.Scheme == nil {
		options.Scheme = scheme.Scheme
	}
	root := rest.CopyConfig(config)
	if before, _, found := strings.Cut(root.Host, "/clusters/"); found {
		root.Host = before
	}
	if options.Registry == nil {
		options.Registry = at(root, "root")
	}
	if options.View != "" {
		root.Host = strings.TrimSuffix(options.View, "/")
	}
	httpClient, err := rest.HTTPClientFor(root)
	if err != nil {
		return nil, err
	}
	p := &Provider{
		Clusters: clusters.New[cluster.Cluster](),
		options:  options,
		config:   root,
		http:     httpClient,
		engaged:  map[multicluster.ClusterName]types.UID{},
	}
	p.objects = newSharedObjects(at(root, "*"), httpClient, options)
	p.ErrorHandler = func(err error, message string, keysAndValues ...any) {
		log.Log.WithName("kcp-provider").Error(err, message, keysAndValues...)
	}
	return p, nil
}

// at is the configuration for one logical cluster, or for all: `*`.
func at(root *rest.Config, name string) *rest.Config {
	config := rest.CopyConfig(root)
	config.Host = strings.TrimSuffix(root.Host, "/") + "/clusters/" + name
	return config
}

// IndexField indexes a field in all clusters, of today and of later.
func (p *Provider) IndexField(_ context.Context, object client.Object, field string, extract client.IndexerFunc) error {
	return p.objects.index(object, field, extract)
}

// Start engages and disengages clusters until the context ends.
func (p *Provider) Start(ctx context.Context, aware multicluster.Aware) error {
	p.aware = aware
	p.objects.start(ctx)
	gvr, clusterOf := logicalClusters, (*unstructured.Unstructured).GetName
	config, httpClient := p.options.Registry, (*http.Client)(nil)
	if p.options.View != "" {
		gvr, config, httpClient = apiBindings, p.objects.config, p.http
		clusterOf = func(object *unstructured.Unstructured) string { return object.GetAnnotations()[ClusterAnnotation] }
	}
	source, err := unstructuredSource(config, httpClient, gvr, "")
	if err != nil {
		return err
	}
	store := newStore(func(object client.Object) string { return clusterOf(object.(*unstructured.Unstructured)) })
	if _, err := store.subscribe("", toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { p.update(ctx, object.(*unstructured.Unstructured), clusterOf) },
		UpdateFunc: func(_, object any) { p.update(ctx, object.(*unstructured.Unstructured), clusterOf) },
		DeleteFunc: func(object any) { p.remove(object.(*unstructured.Unstructured), clusterOf) },
	}); err != nil {
		return err
	}
	toolscache.NewReflectorWithOptions(source, &unstructured.Unstructured{}, store, toolscache.ReflectorOptions{
		Name: "kcp-provider " + gvr.Resource,
	}).RunWithContext(ctx)
	return nil
}

// update engages the cluster of an object that is Ready, once. A cluster stays engaged while the object exists.
func (p *Provider) update(ctx context.Context, object *unstructured.Unstructured, clusterOf func(*unstructured.Unstructured) string) {
	name := multicluster.ClusterName(clusterOf(object))
	if name == "" || object.GetDeletionTimestamp() != nil || !isReady(object) {
		return
	}
	p.lock.Lock()
	defer p.lock.Unlock()
	uid, known := p.engaged[name]
	if known && (uid == object.GetUID() || p.options.View != "") {
		return
	}
	if known {
		// Deleted and made again under the same name.
		p.Remove(name)
	}
	engaged, err := p.newCluster(string(name))
	if err == nil {
		err = p.Add(ctx, name, engaged, p.aware)
	}
	if err != nil {
		log.FromContext(ctx).WithName("kcp-provider").Error(err, "a logical cluster could not be engaged", "cluster", name)
		return
	}
	p.engaged[name] = object.GetUID()
}

func (p *Provider) remove(object *unstructured.Unstructured, clusterOf func(*unstructured.Unstructured) string) {
	name := multicluster.ClusterName(clusterOf(object))
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.engaged[name] != object.GetUID() {
		return
	}
	p.Remove(name)
	delete(p.engaged, name)
}

// newCluster makes the cluster of a logical cluster: its client writes there and reads from the shared objects.
func (p *Provider) newCluster(name string) (cluster.Cluster, error) {
	config := at(p.config, name)
	return cluster.New(config, func(o *cluster.Options) {
		o.Scheme = p.options.Scheme
		o.HTTPClient = p.http
		o.MapperProvider = func(config *rest.Config, httpClient *http.Client) (meta.RESTMapper, error) {
			own, err := apiutil.NewDynamicRESTMapper(config, httpClient)
			if err != nil {
				return nil, fmt.Errorf("no mapper for logical cluster %q: %w", name, err)
			}
			return p.objects.mapper.withFallback(own), nil
		}
		o.NewCache = func(_ *rest.Config, options cache.Options) (cache.Cache, error) {
			return &scopedCache{name: name, objects: p.objects, mapper: options.Mapper}, nil
		}
		// Objects of kinds without Go types are read from the shared objects, too.
		o.Client.Cache = &client.CacheOptions{Unstructured: true}
	})
}

func isReady(object *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, one := range conditions {
		if condition, ok := one.(map[string]any); ok && condition["type"] == "Ready" {
			return condition["status"] == "True"
		}
	}
	return false
}
