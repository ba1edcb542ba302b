package provider

import (
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// sharedMapper remembers what any logical cluster says of a kind, so that thousands of them are not asked the same. A
// kind that a logical cluster lacks is then refused by its server.
type sharedMapper struct {
	lock  sync.RWMutex
	known map[schema.GroupKind]*meta.RESTMapping
}

// withFallback asks the mapper of one logical cluster for what is not known.
func (m *sharedMapper) withFallback(own meta.RESTMapper) meta.RESTMapper {
	return &clusterMapper{RESTMapper: own, shared: m}
}

type clusterMapper struct {
	meta.RESTMapper
	shared *sharedMapper
}

// RESTMapping is what clients and caches ask for.
func (m *clusterMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	m.shared.lock.RLock()
	known := m.shared.known[kind]
	m.shared.lock.RUnlock()
	if known != nil && len(versions) == 1 && versions[0] == known.GroupVersionKind.Version {
		return known, nil
	}
	found, err := m.RESTMapper.RESTMapping(kind, versions...)
	if err != nil {
		return nil, err
	}
	m.shared.lock.Lock()
	m.shared.known[kind] = found
	m.shared.lock.Unlock()
	return found, nil
}
