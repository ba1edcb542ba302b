package provider

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// scopedCache is the cache of one logical cluster: a view of the shared objects.
type scopedCache struct {
	name    string
	objects *sharedObjects
	mapper  meta.RESTMapper
}

var _ cache.Cache = &scopedCache{}

func (c *scopedCache) storeOf(ctx context.Context, object runtime.Object) (*store, *meta.RESTMapping, error) {
	kind, err := c.objects.kindOf(object)
	if err != nil {
		return nil, nil, err
	}
	kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	found, mapping, err := c.objects.of(kind, c.mapper)
	if err != nil {
		return nil, nil, err
	}
	select {
	case <-found.synced:
		return found, mapping, nil
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
}

// Get reads an object of this logical cluster.
func (c *scopedCache) Get(ctx context.Context, key client.ObjectKey, out client.Object, _ ...client.GetOption) error {
	found, mapping, err := c.storeOf(ctx, out)
	if err != nil {
		return err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		key.Namespace = ""
	}
	object, exists, err := found.indexer.GetByKey(keyOf(c.name, key.Namespace, key.Name))
	if err != nil {
		return err
	}
	if !exists {
		return apierrors.NewNotFound(mapping.Resource.GroupResource(), key.Name)
	}
	copied, target := reflect.ValueOf(copyOf(object)), reflect.ValueOf(out)
	if !copied.Type().AssignableTo(target.Type()) {
		return fmt.Errorf("the objects have type %s, and %s was asked for", copied.Type(), target.Type())
	}
	reflect.Indirect(target).Set(reflect.Indirect(copied))
	out.GetObjectKind().SetGroupVersionKind(mapping.GroupVersionKind)
	return nil
}

// List reads objects of this logical cluster, by namespace, labels, and one field that has an index.
func (c *scopedCache) List(ctx context.Context, out client.ObjectList, options ...client.ListOption) error {
	asked := client.ListOptions{}
	asked.ApplyOptions(options)
	found, mapping, err := c.storeOf(ctx, out)
	if err != nil {
		return err
	}
	objects, err := c.candidates(found, asked)
	if err != nil {
		return err
	}
	var items []runtime.Object
	for _, one := range objects {
		object := one.(client.Object)
		if asked.Namespace != "" && object.GetNamespace() != asked.Namespace {
			continue
		}
		if asked.LabelSelector != nil && !asked.LabelSelector.Matches(labels.Set(object.GetLabels())) {
			continue
		}
		if asked.Limit > 0 && int64(len(items)) >= asked.Limit {
			break
		}
		copied := copyOf(object)
		copied.GetObjectKind().SetGroupVersionKind(mapping.GroupVersionKind)
		items = append(items, copied)
	}
	return meta.SetList(out, items)
}

func (c *scopedCache) candidates(found *store, asked client.ListOptions) ([]any, error) {
	switch {
	case asked.Continue != "":
		return nil, errors.New("the cache has no pages")
	case asked.FieldSelector != nil && !asked.FieldSelector.Empty():
		requirements := asked.FieldSelector.Requirements()
		if len(requirements) != 1 {
			return nil, errors.New("the cache selects by one field")
		}
		value, exact := asked.FieldSelector.RequiresExactMatch(requirements[0].Field)
		if !exact {
			return nil, errors.New("the cache selects fields by equality")
		}
		return found.indexer.ByIndex("field "+requirements[0].Field, c.name+"|"+value)
	case asked.Namespace != "":
		return found.indexer.ByIndex(byNamespace, c.name+"|"+asked.Namespace)
	}
	return found.indexer.ByIndex(byCluster, c.name)
}

// GetInformer tells handlers of the objects of this logical cluster.
func (c *scopedCache) GetInformer(_ context.Context, object client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	kind, err := c.objects.kindOf(object)
	if err != nil {
		return nil, err
	}
	found, _, err := c.objects.of(kind, c.mapper)
	if err != nil {
		return nil, err
	}
	return &scopedInformer{name: c.name, store: found, objects: c.objects}, nil
}

// GetInformerForKind tells handlers of the objects of this logical cluster.
func (c *scopedCache) GetInformerForKind(ctx context.Context, gvk schema.GroupVersionKind, options ...cache.InformerGetOption) (cache.Informer, error) {
	object, err := c.objects.options.Scheme.New(gvk)
	if err != nil {
		return nil, err
	}
	one, ok := object.(client.Object)
	if !ok {
		return nil, fmt.Errorf("%T is no object", object)
	}
	return c.GetInformer(ctx, one, options...)
}

// RemoveInformer leaves the shared list and watch to the other clusters.
func (c *scopedCache) RemoveInformer(context.Context, client.Object) error { return nil }

// IndexField indexes the objects of all logical clusters.
func (c *scopedCache) IndexField(_ context.Context, object client.Object, field string, extract client.IndexerFunc) error {
	return c.objects.index(object, field, extract)
}

// Start waits for the end: the shared objects are the provider's.
func (c *scopedCache) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// WaitForCacheSync waits for the kinds that were asked for.
func (c *scopedCache) WaitForCacheSync(ctx context.Context) bool {
	c.objects.lock.Lock()
	var stores []*store
	for _, one := range c.objects.stores {
		stores = append(stores, one)
	}
	c.objects.lock.Unlock()
	for _, one := range stores {
		select {
		case <-one.synced:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// scopedInformer is one kind in one logical cluster.
type scopedInformer struct {
	name    string
	store   *store
	objects *sharedObjects
}

var _ cache.Informer = &scopedInformer{}

func (i *scopedInformer) AddEventHandler(handler toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.store.subscribe(i.name, handler)
}

func (i *scopedInformer) AddEventHandlerWithResyncPeriod(handler toolscache.ResourceEventHandler, _ time.Duration) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.store.subscribe(i.name, handler)
}

func (i *scopedInformer) AddEventHandlerWithOptions(handler toolscache.ResourceEventHandler, _ toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.store.subscribe(i.name, handler)
}

func (i *scopedInformer) RemoveEventHandler(handle toolscache.ResourceEventHandlerRegistration) error {
	if registration, ok := handle.(*subscription); ok {
		i.store.unsubscribe(registration)
	}
	return nil
}

func (i *scopedInformer) AddIndexers(toolscache.Indexers) error {
	return errors.New("use IndexField: the objects are shared by all logical clusters")
}

func (i *scopedInformer) HasSynced() bool                          { return i.store.hasSynced() }
func (i *scopedInformer) HasSyncedChecker() toolscache.DoneChecker { return checker{i.store} }
func (i *scopedInformer) IsStopped() bool {
	i.objects.lock.Lock()
	defer i.objects.lock.Unlock()
	return i.objects.ctx != nil && i.objects.ctx.Err() != nil
}
