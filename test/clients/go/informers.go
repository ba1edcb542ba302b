package main

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/features"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

const informersNamespace = "go-informers"

type tally struct{ added, updated, deleted atomic.Int64 }

// informers runs shared, dynamic and metadata informers with default options and counts their events.
func informers(ctx context.Context, config *rest.Config, seen *recorder) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	if err := newNamespace(ctx, client, informersNamespace); err != nil {
		return err
	}
	const before, after = 30, 20
	if err := createConfigMaps(ctx, client, "before", before); err != nil {
		return err
	}

	factory := kubeinformers.NewSharedInformerFactory(client, 0)
	maps := factory.Core().V1().ConfigMaps()
	counts := &tally{}
	if _, err := maps.Informer().AddEventHandler(counts.handler()); err != nil {
		return err
	}
	factory.Core().V1().Namespaces().Informer()
	factory.Core().V1().Secrets().Informer()
	factory.Core().V1().Services().Informer()
	factory.Core().V1().ServiceAccounts().Informer()
	factory.Core().V1().Pods().Informer()
	factory.Core().V1().Nodes().Informer()
	factory.Core().V1().Events().Informer()
	factory.Apps().V1().Deployments().Informer()
	factory.Apps().V1().ReplicaSets().Informer()
	factory.Batch().V1().Jobs().Informer()
	factory.Rbac().V1().ClusterRoles().Informer()
	factory.Discovery().V1().EndpointSlices().Informer()
	factory.Coordination().V1().Leases().Informer()
	factory.Networking().V1().Ingresses().Informer()
	factory.Start(ctx.Done())
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("the informer of %v did not sync", kind)
		}
	}

	dynamics, metas, err := otherInformers(ctx, config)
	if err != nil {
		return err
	}
	streamed := seen.count(func(q request) bool { return strings.Contains(q.query, "sendInitialEvents=true") })
	listed := seen.count(func(q request) bool {
		return q.method == "GET" && strings.HasSuffix(q.path, "/configmaps") && !strings.Contains(q.query, "watch=true")
	})
	streams := features.FeatureGates().Enabled(features.WatchListClient)

	ours := func(store cache.Store) int {
		found := 0
		for _, key := range store.ListKeys() {
			if strings.HasPrefix(key, informersNamespace+"/before-") || strings.HasPrefix(key, informersNamespace+"/after-") {
				found++
			}
		}
		return found
	}
	everywhere := func(wanted int) func() bool {
		return func() bool {
			return ours(maps.Informer().GetStore()) == wanted && ours(dynamics.GetStore()) == wanted && ours(metas.GetStore()) == wanted
		}
	}
	return all(
		step{"how the first list came", func() error {
			if streams {
				return want(streamed >= 15 && listed == 0, "%d streamed, %d lists of ConfigMaps", streamed, listed)
			}
			return want(streamed == 0 && listed >= 1, "%d streamed, %d lists of ConfigMaps", streamed, listed)
		}},
		step{"what was there", func() error { return until(ctx, "the first objects", everywhere(before)) }},
		step{"what comes", func() error {
			if err := createConfigMaps(ctx, client, "after", after); err != nil {
				return err
			}
			return until(ctx, "the later objects", everywhere(before+after))
		}},
		step{"what changes", func() error {
			for i := range after {
				object, err := maps.Lister().ConfigMaps(informersNamespace).Get(fmt.Sprintf("after-%d", i))
				if err != nil {
					return err
				}
				object = object.DeepCopy()
				object.Data = map[string]string{"changed": "yes"}
				if _, err := client.CoreV1().ConfigMaps(informersNamespace).Update(ctx, object, metav1.UpdateOptions{}); err != nil {
					return err
				}
			}
			return until(ctx, "the updates", func() bool { return counts.updated.Load() == after })
		}},
		step{"what goes", func() error {
			selector := metav1.ListOptions{LabelSelector: "set=after"}
			if err := client.CoreV1().ConfigMaps(informersNamespace).DeleteCollection(ctx, metav1.DeleteOptions{}, selector); err != nil {
				return err
			}
			if err := until(ctx, "the deletes", everywhere(before)); err != nil {
				return err
			}
			return until(ctx, "the handlers", func() bool { return counts.deleted.Load() == after })
		}},
		step{"nothing twice", func() error {
			added, updated := counts.added.Load(), counts.updated.Load()
			left, err := maps.Lister().ConfigMaps(informersNamespace).List(labels.SelectorFromSet(labels.Set{"set": "before"}))
			if err != nil {
				return err
			}
			return want(added == before+after && updated == after && len(left) == before, "%d added, %d updated, %d left", added, updated, len(left))
		}},
	)
}

// otherInformers are a dynamic and a metadata informer, both of ConfigMaps, synced.
func otherInformers(ctx context.Context, config *rest.Config) (dynamics, metas cache.SharedIndexInformer, err error) {
	resource := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	dynamicClient, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, nil, err
	}
	metadataClient, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, nil, err
	}
	dynamicFactory := dynamicinformer.NewDynamicSharedInformerFactory(dynamicClient, 0)
	metadataFactory := metadatainformer.NewSharedInformerFactory(metadataClient, 0)
	dynamics = dynamicFactory.ForResource(resource).Informer()
	metas = metadataFactory.ForResource(resource).Informer()
	dynamicFactory.Start(ctx.Done())
	metadataFactory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), dynamics.HasSynced, metas.HasSynced) {
		return nil, nil, fmt.Errorf("the dynamic or the metadata informer did not sync")
	}
	return dynamics, metas, nil
}

func createConfigMaps(ctx context.Context, client kubernetes.Interface, set string, count int) error {
	for i := range count {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", set, i), Labels: map[string]string{"set": set}}}
		if _, err := client.CoreV1().ConfigMaps(informersNamespace).Create(ctx, object, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

func (t *tally) handler() cache.ResourceEventHandler {
	of := func(object any) bool {
		if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = gone.Obj
		}
		found, ok := object.(*corev1.ConfigMap)
		return ok && found.Namespace == informersNamespace && found.Labels["set"] != ""
	}
	return cache.FilteringResourceEventHandler{FilterFunc: of, Handler: cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { t.added.Add(1) },
		UpdateFunc: func(any, any) { t.updated.Add(1) },
		DeleteFunc: func(any) { t.deleted.Add(1) },
	}}
}
