package main

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
)

const typedNamespace = "go-typed"

// typed uses a clientset with default options: bodies of built-in kinds are protobuf, whatever the encoding of the
// answer.
func typed(ctx context.Context, config *rest.Config, seen *recorder) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	if err := newNamespace(ctx, client, typedNamespace); err != nil {
		return err
	}
	deployments := client.AppsV1().Deployments(typedNamespace)
	configMaps := client.CoreV1().ConfigMaps(typedNamespace)
	return all(
		step{"create one of many kinds", func() error { return createKinds(ctx, client) }},
		step{"a second create is AlreadyExists", func() error {
			_, err := deployments.Create(ctx, webDeployment(), metav1.CreateOptions{})
			return want(apierrors.IsAlreadyExists(err), "%v", err)
		}},
		step{"what was sent came back, and defaults with it", func() error {
			web, err := deployments.Get(ctx, "web", metav1.GetOptions{})
			if err != nil {
				return err
			}
			container := web.Spec.Template.Spec.Containers[0]
			return want(container.Resources.Limits.Memory().String() == "64Mi" &&
				container.ReadinessProbe.HTTPGet.Port == intstr.FromString("http") &&
				web.Spec.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType &&
				*web.Spec.Replicas == 2 && web.Generation == 1, "%+v", web.Spec)
		}},
		step{"binary data survive", func() error {
			read, err := configMaps.Get(ctx, "binary", metav1.GetOptions{})
			if err != nil {
				return err
			}
			return want(string(read.BinaryData["blob"]) == "\x00\xff\x80", "%v", read.BinaryData)
		}},
		step{"a stale update is a conflict, a retry is not", func() error {
			stale, err := deployments.Get(ctx, "web", metav1.GetOptions{})
			if err != nil {
				return err
			}
			fresh := stale.DeepCopy()
			fresh.Spec.Paused = true
			if _, err = deployments.Update(ctx, fresh, metav1.UpdateOptions{}); err != nil {
				return err
			}
			if _, err = deployments.Update(ctx, stale, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
				return fmt.Errorf("not a conflict: %v", err)
			}
			return retry.RetryOnConflict(retry.DefaultRetry, func() error {
				current, err := deployments.Get(ctx, "web", metav1.GetOptions{})
				if err != nil {
					return err
				}
				current.Spec.Paused = false
				_, err = deployments.Update(ctx, current, metav1.UpdateOptions{})
				return err
			})
		}},
		step{"scale", func() error {
			scale, err := deployments.GetScale(ctx, "web", metav1.GetOptions{})
			if err != nil {
				return err
			}
			scale.Spec.Replicas = 5
			if _, err = deployments.UpdateScale(ctx, "web", scale, metav1.UpdateOptions{}); err != nil {
				return err
			}
			web, err := deployments.Get(ctx, "web", metav1.GetOptions{})
			if err != nil {
				return err
			}
			return want(*web.Spec.Replicas == 5, "%d replicas", *web.Spec.Replicas)
		}},
		step{"status is its own", func() error {
			web, err := deployments.Get(ctx, "web", metav1.GetOptions{})
			if err != nil {
				return err
			}
			web.Status.Replicas = 5
			web.Spec.Replicas = ptr[int32](9)
			web, err = deployments.UpdateStatus(ctx, web, metav1.UpdateOptions{})
			if err != nil {
				return err
			}
			return want(web.Status.Replicas == 5 && *web.Spec.Replicas == 5, "%+v", web)
		}},
		step{"strategic merge patch", func() error {
			patch := []byte(`{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"nginx:2"}]}}}}`)
			web, err := deployments.Patch(ctx, "web", types.StrategicMergePatchType, patch, metav1.PatchOptions{})
			if err != nil {
				return err
			}
			container := web.Spec.Template.Spec.Containers[0]
			return want(container.Image == "nginx:2" && len(container.Ports) == 1, "%+v", container)
		}},
		step{"lists are selected", func() error {
			found, err := configMaps.List(ctx, metav1.ListOptions{LabelSelector: "kind in (binary,text)", FieldSelector: "metadata.name!=text"})
			if err != nil {
				return err
			}
			return want(len(found.Items) == 1 && found.Items[0].Name == "binary", "%d items", len(found.Items))
		}},
		step{"access review", func() error {
			review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
				ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "delete", Resource: "pods", Namespace: typedNamespace},
			}}
			answer, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
			if err != nil {
				return err
			}
			return want(answer.Status.Allowed, "%+v", answer.Status)
		}},
		step{"a wrong precondition refuses a delete", func() error {
			err := deployments.Delete(ctx, "web", metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions("other")})
			return want(apierrors.IsConflict(err), "%v", err)
		}},
		step{"delete, and all of a kind", func() error {
			if err := deployments.Delete(ctx, "web", metav1.DeleteOptions{}); err != nil {
				return err
			}
			err := configMaps.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "kind"})
			if err != nil {
				return err
			}
			_, err = configMaps.Get(ctx, "binary", metav1.GetOptions{})
			return want(apierrors.IsNotFound(err), "%v", err)
		}},
		step{"bodies were protobuf", func() error {
			sent := seen.count(func(q request) bool { return q.method == "POST" && isProtobuf(q) })
			return want(sent >= 9, "%d", sent)
		}},
	)
}

func newNamespace(ctx context.Context, client kubernetes.Interface, name string) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	return err
}

func createKinds(ctx context.Context, client kubernetes.Interface) error {
	create := metav1.CreateOptions{}
	labels := map[string]string{"app": "web"}
	named := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Labels: map[string]string{"kind": name}}
	}
	pod := corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "busybox"}}}
	jobs := batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: pod}}
	one := func(_ any, err error) error { return err }
	for _, err := range []error{
		one(client.AppsV1().Deployments(typedNamespace).Create(ctx, webDeployment(), create)),
		one(client.CoreV1().ConfigMaps(typedNamespace).Create(ctx, &corev1.ConfigMap{
			ObjectMeta: named("binary"), BinaryData: map[string][]byte{"blob": []byte("\x00\xff\x80")},
		}, create)),
		one(client.CoreV1().ConfigMaps(typedNamespace).Create(ctx, &corev1.ConfigMap{
			ObjectMeta: named("text"), Data: map[string]string{"a": "b"},
		}, create)),
		one(client.CoreV1().Services(typedNamespace).Create(ctx, &corev1.Service{
			ObjectMeta: named("web"),
			Spec:       corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromString("http")}}},
		}, create)),
		one(client.CoreV1().Secrets(typedNamespace).Create(ctx, &corev1.Secret{
			ObjectMeta: named("web"), StringData: map[string]string{"password": "s3cret"},
		}, create)),
		one(client.CoreV1().ServiceAccounts(typedNamespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: named("web")}, create)),
		one(client.BatchV1().Jobs(typedNamespace).Create(ctx, &batchv1.Job{ObjectMeta: named("web"), Spec: jobs}, create)),
		one(client.BatchV1().CronJobs(typedNamespace).Create(ctx, &batchv1.CronJob{
			ObjectMeta: named("web"),
			Spec:       batchv1.CronJobSpec{Schedule: "*/5 * * * *", JobTemplate: batchv1.JobTemplateSpec{Spec: jobs}},
		}, create)),
		one(client.RbacV1().Roles(typedNamespace).Create(ctx, &rbacv1.Role{
			ObjectMeta: named("web"),
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}},
		}, create)),
		one(client.AutoscalingV2().HorizontalPodAutoscalers(typedNamespace).Create(ctx, &autoscalingv2.HorizontalPodAutoscaler{
			ObjectMeta: named("web"),
			Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
				MaxReplicas:    3,
				ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"},
			},
		}, create)),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

func webDeployment() *appsv1.Deployment {
	labels := map[string]string{"app": "web"}
	probe := corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromString("http")}}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr[int32](2),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name:           "web",
					Image:          "nginx:1",
					Ports:          []corev1.ContainerPort{{Name: "http", ContainerPort: 80}},
					Resources:      corev1.ResourceRequirements{Limits: corev1.ResourceList{"memory": resource.MustParse("64Mi")}},
					ReadinessProbe: &corev1.Probe{ProbeHandler: probe},
				}}},
			},
		},
	}
}
