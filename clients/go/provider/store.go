package provider

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	byCluster   = "cluster"
	byNamespace = "cluster and namespace"
)

// store has the objects of one kind in all logical clusters, and tells the handlers of a logical cluster of its
// changes. It is what a reflector writes to; however many clusters are engaged, no goroutine runs for them.
type store struct {
	clusterOf func(client.Object) string
	indexer   toolscache.Indexer
	synced    chan struct{}
	once      sync.Once

	// lock orders changes and subscriptions: a handler hears of each object once at its subscription or after it.
	lock sync.Mutex
	// handlers by logical cluster; those of the empty name hear of all.
	handlers map[string]map[*subscription]toolscache.ResourceEventHandler
}

// subscription is a handler's registration.
type subscription struct {
	cluster string
	store   *store
}

func newStore(clusterOf func(client.Object) string) *store {
	s := &store{
		clusterOf: clusterOf,
		synced:    make(chan struct{}),
		handlers:  map[string]map[*subscription]toolscache.ResourceEventHandler{},
	}
	s.indexer = toolscache.NewIndexer(s.key, toolscache.Indexers{
		byCluster: func(object any) ([]string, error) {
			return []string{clusterOf(object.(client.Object))}, nil
		},
		byNamespace: func(object any) ([]string, error) {
			one := object.(client.Object)
			return []string{clusterOf(one) + "|" + one.GetNamespace()}, nil
		},
	})
	return s
}

func (s *store) key(object any) (string, error) {
	one, ok := object.(client.Object)
	if !ok {
		return "", fmt.Errorf("%T is no object", object)
	}
	return keyOf(s.clusterOf(one), one.GetNamespace(), one.GetName()), nil
}

func keyOf(cluster, namespace, name string) string {
	return cluster + "|" + namespace + "/" + name
}

// Add is a part of toolscache.ReflectorStore.
func (s *store) Add(object any) error { return s.Update(object) }

// Update is a part of toolscache.ReflectorStore.
func (s *store) Update(object any) error {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.put(object, false)
}

func (s *store) put(object any, initial bool) error {
	before, known, err := s.indexer.Get(object)
	if err != nil {
		return err
	}
	if err := s.indexer.Update(object); err != nil {
		return err
	}
	s.tell(object, func(handler toolscache.ResourceEventHandler) {
		if known {
			handler.OnUpdate(before, object)
		} else {
			handler.OnAdd(object, initial)
		}
	})
	return nil
}

// Delete is a part of toolscache.ReflectorStore.
func (s *store) Delete(object any) error {
	s.lock.Lock()
	defer s.lock.Unlock()
	if err := s.indexer.Delete(object); err != nil {
		return err
	}
	s.tell(object, func(handler toolscache.ResourceEventHandler) { handler.OnDelete(object) })
	return nil
}

// Replace is a part of toolscache.ReflectorStore: the list that a reflector begins with, also after it has lost its
// position.
func (s *store) Replace(objects []any, _ string) error {
	s.lock.Lock()
	defer s.lock.Unlock()
	listed := make(map[string]struct{}, len(objects))
	for _, object := range objects {
		key, err := s.key(object)
		if err != nil {
			return err
		}
		listed[key] = struct{}{}
	}
	for _, key := range s.indexer.ListKeys() {
		if _, found := listed[key]; found {
			continue
		}
		object, _, _ := s.indexer.GetByKey(key)
		if err := s.indexer.Delete(object); err != nil {
			return err
		}
		s.tell(object, func(handler toolscache.ResourceEventHandler) { handler.OnDelete(object) })
	}
	for _, object := range objects {
		if s.isKnown(object) {
			continue
		}
		if err := s.put(object, true); err != nil {
			return err
		}
	}
	s.once.Do(func() { close(s.synced) })
	return nil
}

// isKnown says whether this very state of the object is in the store.
func (s *store) isKnown(object any) bool {
	before, known, _ := s.indexer.Get(object)
	return known && before.(client.Object).GetResourceVersion() == object.(client.Object).GetResourceVersion()
}

// Resync is a part of toolscache.ReflectorStore.
func (s *store) Resync() error { return nil }

func (s *store) tell(object any, call func(toolscache.ResourceEventHandler)) {
	for _, handler := range s.handlers[s.clusterOf(object.(client.Object))] {
		call(handler)
	}
	for _, handler := range s.handlers[""] {
		call(handler)
	}
}

// subscribe tells a handler of all objects of a logical cluster, then of their changes. An empty name: of all.
func (s *store) subscribe(cluster string, handler toolscache.ResourceEventHandler) (*subscription, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	known := s.indexer.List()
	if cluster != "" {
		found, err := s.indexer.ByIndex(byCluster, cluster)
		if err != nil {
			return nil, err
		}
		known = found
	}
	for _, object := range known {
		handler.OnAdd(object, true)
	}
	registration := &subscription{cluster: cluster, store: s}
	if s.handlers[cluster] == nil {
		s.handlers[cluster] = map[*subscription]toolscache.ResourceEventHandler{}
	}
	s.handlers[cluster][registration] = handler
	return registration, nil
}

func (s *store) unsubscribe(registration *subscription) {
	s.lock.Lock()
	defer s.lock.Unlock()
	delete(s.handlers[registration.cluster], registration)
	if len(s.handlers[registration.cluster]) == 0 {
		delete(s.handlers, registration.cluster)
	}
}

func (s *store) hasSynced() bool {
	select {
	case <-s.synced:
		return true
	default:
		return false
	}
}

// HasSynced says whether the handler was told of all objects that there were at the beginning.
func (r *subscription) HasSynced() bool { return r.store.hasSynced() }

// HasSyncedChecker is done when HasSynced is true.
func (r *subscription) HasSyncedChecker() toolscache.DoneChecker { return checker{r.store} }

type checker struct{ store *store }

func (c checker) Name() string          { return "kcp-provider" }
func (c checker) Done() <-chan struct{} { return c.store.synced }

// copyOf is the object for a caller that may change it.
func copyOf(object any) runtime.Object { return object.(runtime.Object).DeepCopyObject() }
