package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applyapps "k8s.io/client-go/applyconfigurations/apps/v1"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	applymeta "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const applyNamespace = "go-apply"

// apply uses typed apply configurations: two managers share a Deployment by server-side apply, seen by a watch.
func apply(ctx context.Context, config *rest.Config, _ *recorder) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	if err := newNamespace(ctx, client, applyNamespace); err != nil {
		return err
	}
	deployments := client.AppsV1().Deployments(applyNamespace)
	events, err := deployments.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	defer events.Stop()
	one := metav1.ApplyOptions{FieldManager: "one"}
	two := metav1.ApplyOptions{FieldManager: "two"}
	return all(
		step{"the first apply creates", func() error {
			made, err := deployments.Apply(ctx, appliedWeb("nginx:1").WithLabels(map[string]string{"a": "b"}), one)
			if err != nil {
				return err
			}
			return want(managers(made) == "one", "%s", managers(made))
		}},
		step{"the same again writes nothing", func() error {
			before, err := deployments.Get(ctx, "web", metav1.GetOptions{})
			if err != nil {
				return err
			}
			after, err := deployments.Apply(ctx, appliedWeb("nginx:1").WithLabels(map[string]string{"a": "b"}), one)
			if err != nil {
				return err
			}
			return want(before.ResourceVersion == after.ResourceVersion, "%s, then %s", before.ResourceVersion, after.ResourceVersion)
		}},
		step{"another manager's value is a conflict that names the field", func() error {
			_, err := deployments.Apply(ctx, appliedWeb("nginx:2"), two)
			if !apierrors.IsConflict(err) {
				return fmt.Errorf("not a conflict: %v", err)
			}
			causes := err.(apierrors.APIStatus).Status().Details.Causes
			return want(len(causes) == 1 && causes[0].Type == metav1.CauseTypeFieldManagerConflict &&
				causes[0].Field == `.spec.template.spec.containers[name="web"].image`, "%+v", causes)
		}},
		step{"force takes the field over, and a dropped field is removed", func() error {
			force := two
			force.Force = true
			if _, err := deployments.Apply(ctx, appliedWeb("nginx:2"), force); err != nil {
				return err
			}
			kept := applyapps.Deployment("web", applyNamespace).WithLabels(map[string]string{"c": "d"})
			web, err := deployments.Apply(ctx, kept, one)
			if err != nil {
				return err
			}
			return want(web.Labels["a"] == "" && web.Labels["c"] == "d" && managers(web) == "one two" &&
				web.Spec.Template.Spec.Containers[0].Image == "nginx:2", "%+v", web)
		}},
		step{"what one manager applied can be extracted", func() error {
			web, err := deployments.Get(ctx, "web", metav1.GetOptions{})
			if err != nil {
				return err
			}
			extracted, err := applyapps.ExtractDeployment(web, "one")
			if err != nil {
				return err
			}
			return want(extracted.Labels["c"] == "d" && extracted.Spec == nil, "%+v", extracted)
		}},
		step{"the watch saw each write once", func() error {
			for _, image := range []string{"nginx:1", "nginx:2", "nginx:2"} {
				event := <-events.ResultChan()
				web, ok := event.Object.(*appsv1.Deployment)
				if !ok || web.Spec.Template.Spec.Containers[0].Image != image {
					return fmt.Errorf("%s instead of %s: %+v", event.Type, image, event.Object)
				}
			}
			return nil
		}},
	)
}

func appliedWeb(image string) *applyapps.DeploymentApplyConfiguration {
	labels := map[string]string{"app": "web"}
	container := applycore.Container().WithName("web").WithImage(image)
	template := applycore.PodTemplateSpec().WithLabels(labels).WithSpec(applycore.PodSpec().WithContainers(container))
	spec := applyapps.DeploymentSpec().WithSelector(applymeta.LabelSelector().WithMatchLabels(labels)).WithTemplate(template)
	return applyapps.Deployment("web", applyNamespace).WithSpec(spec)
}

// managers returns the sorted names of the owners of fields: the server sorts entries by their time, in seconds.
func managers(web *appsv1.Deployment) string {
	names := []string{}
	for _, entry := range web.ManagedFields {
		names = append(names, entry.Manager)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}
