package main

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"
	watchtools "k8s.io/client-go/tools/watch"
)

const pagesNamespace = "go-pages"

// pages lists in pages while objects are created, and then watches from the revision of the first page.
func pages(ctx context.Context, config *rest.Config, seen *recorder) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	if err := newNamespace(ctx, client, pagesNamespace); err != nil {
		return err
	}
	secrets := client.CoreV1().Secrets(pagesNamespace)
	create := func(name string) error {
		_, err := secrets.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		return err
	}
	const count = 130
	for i := range count {
		if err := create(fmt.Sprintf("s-%03d", i)); err != nil {
			return err
		}
	}
	revision := ""
	names := map[string]bool{}
	all := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		list, err := secrets.List(ctx, options)
		if err != nil {
			return nil, err
		}
		if revision == "" {
			revision = list.ResourceVersion
			if list.RemainingItemCount == nil || *list.RemainingItemCount != count-20 {
				return nil, fmt.Errorf("remainingItemCount is %v", list.RemainingItemCount)
			}
			if err := create("s-000-late"); err != nil {
				return nil, err
			}
		}
		return list, want(list.ResourceVersion == revision, "a page of %s after one of %s", list.ResourceVersion, revision)
	})
	all.PageSize = 20
	all.PageBufferSize = 0
	err = all.EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
		names[object.(*corev1.Secret).Name] = true
		return nil
	})
	if err != nil {
		return err
	}
	asked := seen.count(func(q request) bool { return strings.Contains(q.query, "continue=") })
	if len(names) != count || names["s-000-late"] || asked != 6 {
		return fmt.Errorf("%d names, %d further pages", len(names), asked)
	}

	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, revision, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.TimeoutSeconds = ptr[int64](2)
			return secrets.Watch(ctx, options)
		},
	})
	if err != nil {
		return err
	}
	defer watcher.Stop()
	for _, wanted := range []string{"s-000-late", "s-later", "s-last"} {
		if wanted == "s-last" {
			watches := func() int {
				return seen.count(func(q request) bool { return strings.Contains(q.query, "watch=true") })
			}
			if err := until(ctx, "the watch to be opened again", func() bool { return watches() > 1 }); err != nil {
				return err
			}
		}
		if wanted != "s-000-late" {
			if err := create(wanted); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case event := <-watcher.ResultChan():
			found, ok := event.Object.(*corev1.Secret)
			if !ok || event.Type != watch.Added || found.Name != wanted {
				return fmt.Errorf("%s %v instead of %s", event.Type, event.Object, wanted)
			}
		}
	}
	return nil
}
