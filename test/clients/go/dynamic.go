package main

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

var crds = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// widgetDefinition is a CustomResourceDefinition of Widgets in a group: status and scale, one default, one column.
func widgetDefinition(group string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	text := fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.%[1]s}
spec:
  group: %[1]s
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList, shortNames: [wd]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}
    additionalPrinterColumns: [{name: Colour, type: string, jsonPath: .spec.colour}]
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [colour]
            properties:
              colour: {type: string, enum: [red, green]}
              replicas: {type: integer, format: int32, minimum: 0, default: 1}
          status:
            type: object
            properties:
              replicas: {type: integer, format: int32}
              ready: {type: boolean}
              observedGeneration: {type: integer, format: int64}
`, group)
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		panic(err)
	}
	return object
}

// newWidgets creates the definition and waits until it is established.
func newWidgets(ctx context.Context, client dynamic.Interface, group string) (schema.GroupVersionResource, error) {
	definition, err := client.Resource(crds).Create(ctx, widgetDefinition(group), metav1.CreateOptions{})
	if err != nil {
		return schema.GroupVersionResource{}, err
	}
	err = until(ctx, "the definition to be established", func() bool {
		definition, err = client.Resource(crds).Get(ctx, "widgets."+group, metav1.GetOptions{})
		if err != nil {
			return true
		}
		conditions, _, _ := unstructured.NestedSlice(definition.Object, "status", "conditions")
		for _, condition := range conditions {
			of, _ := condition.(map[string]any)
			if of["type"] == "Established" && of["status"] == "True" {
				return true
			}
		}
		return false
	})
	return schema.GroupVersionResource{Group: group, Version: "v1", Resource: "widgets"}, err
}

func dynamicClient(ctx context.Context, config *rest.Config, _ *recorder) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	resource, err := newWidgets(ctx, client, "dynamic.test.dev")
	if err != nil {
		return err
	}
	widgets := client.Resource(resource).Namespace("default")
	widget := func(name, colour string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "dynamic.test.dev/v1", "kind": "Widget",
			"metadata": map[string]any{"name": name}, "spec": map[string]any{"colour": colour},
		}}
	}
	var events watch.Interface
	return all(
		step{"a first list is empty and can be watched from", func() error {
			list, err := widgets.List(ctx, metav1.ListOptions{})
			if err != nil {
				return err
			}
			events, err = widgets.Watch(ctx, metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
			if err != nil {
				return err
			}
			return want(len(list.Items) == 0, "%d items", len(list.Items))
		}},
		step{"create, with a default", func() error {
			created, err := widgets.Create(ctx, widget("one", "red"), metav1.CreateOptions{})
			if err != nil {
				return err
			}
			replicas, _, _ := unstructured.NestedInt64(created.Object, "spec", "replicas")
			return want(replicas == 1 && created.GetGeneration() == 1, "%v", created.Object)
		}},
		step{"what the schema refuses is Invalid", func() error {
			_, err := widgets.Create(ctx, widget("two", "blue"), metav1.CreateOptions{})
			return want(apierrors.IsInvalid(err), "%v", err)
		}},
		step{"update needs a resourceVersion", func() error {
			_, err := widgets.Update(ctx, widget("one", "green"), metav1.UpdateOptions{})
			return want(apierrors.IsInvalid(err), "%v", err)
		}},
		step{"merge patch", func() error {
			patched, err := widgets.Patch(ctx, "one", types.MergePatchType, []byte(`{"spec":{"colour":"green"}}`), metav1.PatchOptions{})
			if err != nil {
				return err
			}
			return want(patched.GetGeneration() == 2, "generation %d", patched.GetGeneration())
		}},
		step{"status", func() error {
			current, err := widgets.Get(ctx, "one", metav1.GetOptions{})
			if err != nil {
				return err
			}
			_ = unstructured.SetNestedField(current.Object, true, "status", "ready")
			updated, err := widgets.UpdateStatus(ctx, current, metav1.UpdateOptions{})
			if err != nil {
				return err
			}
			return want(updated.GetGeneration() == 2, "generation %d", updated.GetGeneration())
		}},
		step{"scale", func() error {
			scale, err := widgets.Get(ctx, "one", metav1.GetOptions{}, "scale")
			if err != nil {
				return err
			}
			_ = unstructured.SetNestedField(scale.Object, int64(4), "spec", "replicas")
			if _, err = widgets.Update(ctx, scale, metav1.UpdateOptions{}, "scale"); err != nil {
				return err
			}
			current, err := widgets.Get(ctx, "one", metav1.GetOptions{})
			if err != nil {
				return err
			}
			replicas, _, _ := unstructured.NestedInt64(current.Object, "spec", "replicas")
			return want(replicas == 4, "%d replicas", replicas)
		}},
		step{"delete", func() error { return widgets.Delete(ctx, "one", metav1.DeleteOptions{}) }},
		step{"the watch told it in order", func() error {
			defer events.Stop()
			for _, wanted := range []watch.EventType{watch.Added, watch.Modified, watch.Modified, watch.Modified, watch.Deleted} {
				select {
				case <-ctx.Done():
					return ctx.Err()
				case event := <-events.ResultChan():
					if event.Type != wanted {
						return fmt.Errorf("%s instead of %s", event.Type, wanted)
					}
				}
			}
			return nil
		}},
		step{"the definition goes", func() error {
			if err := client.Resource(crds).Delete(ctx, "widgets.dynamic.test.dev", metav1.DeleteOptions{}); err != nil {
				return err
			}
			return until(ctx, "the resource to be gone", func() bool {
				_, err := widgets.List(ctx, metav1.ListOptions{})
				return apierrors.IsNotFound(err)
			})
		}},
	)
}
