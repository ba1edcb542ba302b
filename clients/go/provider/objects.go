package provider

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// form is how objects of a kind are read: with their Go type, without one, or their metadata alone.
type form int

const (
	typed form = iota
	untyped
	metadataOnly
)

type kindAndForm struct {
	schema.GroupVersionKind
	form
}

type fieldIndex struct {
	field   string
	extract client.IndexerFunc
}

// sharedObjects has a store for each kind that somebody has asked for.
type sharedObjects struct {
	// config leads to all logical clusters.
	config  *rest.Config
	http    *http.Client
	options Options
	mapper  *sharedMapper

	lock    sync.Mutex
	ctx     context.Context
	stores  map[kindAndForm]*store
	indexes map[kindAndForm][]fieldIndex
	waiting []func(context.Context)
}

func newSharedObjects(config *rest.Config, httpClient *http.Client, options Options) *sharedObjects {
	return &sharedObjects{
		config:  config,
		http:    httpClient,
		options: options,
		mapper:  &sharedMapper{known: map[schema.GroupKind]*meta.RESTMapping{}},
		stores:  map[kindAndForm]*store{},
		indexes: map[kindAndForm][]fieldIndex{},
	}
}

func clusterOf(object client.Object) string { return object.GetAnnotations()[ClusterAnnotation] }

// start lets the reflectors run until the context ends.
func (o *sharedObjects) start(ctx context.Context) {
	o.lock.Lock()
	defer o.lock.Unlock()
	o.ctx = ctx
	for _, run := range o.waiting {
		go run(ctx)
	}
	o.waiting = nil
}

func (o *sharedObjects) kindOf(object runtime.Object) (kindAndForm, error) {
	gvk, err := apiutil.GVKForObject(object, o.options.Scheme)
	if err != nil {
		return kindAndForm{}, err
	}
	kind := kindAndForm{GroupVersionKind: gvk}
	switch object.(type) {
	case runtime.Unstructured:
		kind.form = untyped
	case *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		kind.form = metadataOnly
	}
	return kind, nil
}

// of is the store of a kind; the first call for a kind begins its list and watch.
func (o *sharedObjects) of(kind kindAndForm, mapper meta.RESTMapper) (*store, *meta.RESTMapping, error) {
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, nil, err
	}
	o.lock.Lock()
	defer o.lock.Unlock()
	if known, ok := o.stores[kind]; ok {
		return known, mapping, nil
	}
	source, expected, err := o.source(kind, mapping.Resource)
	if err != nil {
		return nil, nil, err
	}
	made := newStore(clusterOf)
	for _, index := range o.indexes[kind] {
		if err := made.indexer.AddIndexers(indexers(index)); err != nil {
			return nil, nil, err
		}
	}
	reflector := toolscache.NewReflectorWithOptions(source, expected, made, toolscache.ReflectorOptions{
		Name: "kcp-provider " + mapping.Resource.Resource,
	})
	if o.ctx == nil {
		o.waiting = append(o.waiting, reflector.RunWithContext)
	} else {
		go reflector.RunWithContext(o.ctx)
	}
	o.stores[kind] = made
	return made, mapping, nil
}

// index adds an index to the objects of a kind; the same index for several clusters is one.
func (o *sharedObjects) index(object client.Object, field string, extract client.IndexerFunc) error {
	kind, err := o.kindOf(object)
	if err != nil {
		return err
	}
	o.lock.Lock()
	defer o.lock.Unlock()
	for _, known := range o.indexes[kind] {
		if known.field == field {
			return nil
		}
	}
	index := fieldIndex{field, extract}
	if known, ok := o.stores[kind]; ok {
		if err := known.indexer.AddIndexers(indexers(index)); err != nil {
			return err
		}
	}
	o.indexes[kind] = append(o.indexes[kind], index)
	return nil
}

func indexers(index fieldIndex) toolscache.Indexers {
	return toolscache.Indexers{"field " + index.field: func(object any) ([]string, error) {
		one := object.(client.Object)
		var keys []string
		for _, value := range index.extract(one) {
			keys = append(keys, clusterOf(one)+"|"+value)
		}
		return keys, nil
	}}
}

// source lists and watches a kind over all logical clusters, and has an object of the type that it gives.
func (o *sharedObjects) source(kind kindAndForm, gvr schema.GroupVersionResource) (toolscache.ListerWatcher, any, error) {
	switch kind.form {
	case untyped:
		expected := &unstructured.Unstructured{}
		expected.SetGroupVersionKind(kind.GroupVersionKind)
		source, err := unstructuredSource(o.config, o.http, gvr, o.options.ShardSelector)
		return source, expected, err
	case metadataOnly:
		source, err := o.metadataSource(kind.GroupVersionKind, gvr)
		return source, &metav1.PartialObjectMetadata{}, err
	}
	source, err := o.typedSource(kind.GroupVersionKind, gvr)
	if err != nil {
		return nil, nil, err
	}
	expected, err := o.options.Scheme.New(kind.GroupVersionKind)
	return source, expected, err
}

func unstructuredSource(config *rest.Config, httpClient *http.Client, gvr schema.GroupVersionResource, shard string) (toolscache.ListerWatcher, error) {
	made, err := dynamic.NewForConfig(config)
	if httpClient != nil {
		made, err = dynamic.NewForConfigAndClient(config, httpClient)
	}
	if err != nil {
		return nil, err
	}
	resource := made.Resource(gvr)
	return listWatch(shard,
		func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return resource.List(ctx, options)
		},
		resource.Watch,
	), nil
}

func (o *sharedObjects) metadataSource(gvk schema.GroupVersionKind, gvr schema.GroupVersionResource) (toolscache.ListerWatcher, error) {
	made, err := metadata.NewForConfigAndClient(o.config, o.http)
	if err != nil {
		return nil, err
	}
	resource := made.Resource(gvr)
	return listWatch(o.options.ShardSelector,
		func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := resource.List(ctx, options)
			if err != nil {
				return nil, err
			}
			for i := range list.Items {
				list.Items[i].SetGroupVersionKind(gvk)
			}
			return list, nil
		},
		func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			opened, err := resource.Watch(ctx, options)
			if err != nil {
				return nil, err
			}
			return watch.Filter(opened, func(event watch.Event) (watch.Event, bool) {
				event.Object.GetObjectKind().SetGroupVersionKind(gvk)
				return event, true
			}), nil
		},
	), nil
}

func (o *sharedObjects) typedSource(gvk schema.GroupVersionKind, gvr schema.GroupVersionResource) (toolscache.ListerWatcher, error) {
	codecs := serializer.NewCodecFactory(o.options.Scheme)
	made, err := apiutil.RESTClientForGVK(gvk, false, false, o.config, codecs, o.http)
	if err != nil {
		return nil, err
	}
	parameters := runtime.NewParameterCodec(o.options.Scheme)
	return listWatch(o.options.ShardSelector,
		func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := o.options.Scheme.New(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
			if err != nil {
				return nil, err
			}
			return list, made.Get().Resource(gvr.Resource).VersionedParams(&options, parameters).Do(ctx).Into(list)
		},
		func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return made.Get().Resource(gvr.Resource).VersionedParams(&options, parameters).Watch(ctx)
		},
	), nil
}

func listWatch(
	shard string,
	list func(context.Context, metav1.ListOptions) (runtime.Object, error),
	open func(context.Context, metav1.ListOptions) (watch.Interface, error),
) toolscache.ListerWatcher {
	return pagedList{&toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.ShardSelector = shard
			found, err := list(ctx, options)
			if err != nil || shard == "" {
				return found, err
			}
			if sharded, ok := found.(interface{ GetShardInfo() *metav1.ShardInfo }); ok && sharded.GetShardInfo() == nil {
				return nil, fmt.Errorf("the server does not apply shardSelector")
			}
			return found, nil
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.Watch, options.AllowWatchBookmarks, options.ShardSelector = true, true, shard
			return open(ctx, options)
		},
	}}
}

// pagedList keeps a reflector from a watch that begins with the list: the reflector would collect its objects by
// namespace and name, without their logical cluster.
type pagedList struct{ *toolscache.ListWatch }

// IsWatchListSemanticsUnSupported is what the reflector asks.
func (pagedList) IsWatchListSemanticsUnSupported() bool { return true }
