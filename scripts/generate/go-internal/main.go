// Command go-internal writes how the structs look that a real server shows in what it refuses. They are Kubernetes'
// internal ones: members go by their Go names, nothing is left out, and some stand elsewhere than in the API.
//
//	go run . > ../../../src/virtualapi/kinds/resources/typed/generated/internal-types.json
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"reflect"
	"sort"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kubernetes/pkg/apis/admissionregistration"
	"k8s.io/kubernetes/pkg/apis/apps"
	"k8s.io/kubernetes/pkg/apis/autoscaling"
	"k8s.io/kubernetes/pkg/apis/batch"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/apis/flowcontrol"
	"k8s.io/kubernetes/pkg/apis/networking"
	dra "k8s.io/kubernetes/pkg/apis/resource"
	"k8s.io/kubernetes/pkg/apis/storage"
)

// What is shown: an internal struct, and the same one of the API.
var roots = [][2]any{
	{core.PodTemplateSpec{}, corev1.PodTemplateSpec{}},
	{core.EphemeralContainer{}, corev1.EphemeralContainer{}},
	{core.PersistentVolumeSource{}, corev1.PersistentVolumeSource{}},
	{core.PersistentVolumeClaimSpec{}, corev1.PersistentVolumeClaimSpec{}},
	{core.VolumeNodeAffinity{}, corev1.VolumeNodeAffinity{}},
	{core.Taint{}, corev1.Taint{}},
	{core.ScopeSelector{}, corev1.ScopeSelector{}},
	{core.PodIP{}, corev1.PodIP{}},
	{core.HostIP{}, corev1.HostIP{}},
	{core.NodeAddress{}, corev1.NodeAddress{}},
	{apps.DeploymentStrategy{}, appsv1.DeploymentStrategy{}},
	{apps.StatefulSetUpdateStrategy{}, appsv1.StatefulSetUpdateStrategy{}},
	{apps.DaemonSetUpdateStrategy{}, appsv1.DaemonSetUpdateStrategy{}},
	{batch.PodFailurePolicy{}, batchv1.PodFailurePolicy{}},
	{batch.SuccessPolicy{}, batchv1.SuccessPolicy{}},
	{networking.ServiceCIDRSpec{}, networkingv1.ServiceCIDRSpec{}},
	{networking.ParentReference{}, networkingv1.ParentReference{}},
	{networking.IngressSpec{}, networkingv1.IngressSpec{}},
	{autoscaling.HPAScalingRules{}, autoscalingv2.HPAScalingRules{}},
	{core.NodeSelectorTerm{}, corev1.NodeSelectorTerm{}},
	{core.ObjectReference{}, corev1.ObjectReference{}},
	{core.EventSource{}, corev1.EventSource{}},
	{admissionregistration.AuditAnnotation{}, admissionregistrationv1.AuditAnnotation{}},
	{flowcontrol.FlowSchemaSpec{}, flowcontrolv1.FlowSchemaSpec{}},
	{flowcontrol.PriorityLevelConfigurationSpec{}, flowcontrolv1.PriorityLevelConfigurationSpec{}},
	{storage.CSINodeDriver{}, storagev1.CSINodeDriver{}},
	{storage.VolumeAttachmentSpec{}, storagev1.VolumeAttachmentSpec{}},
	{dra.ResourceClaimSpec{}, resourcev1.ResourceClaimSpec{}},
	{dra.ResourceClaimTemplateSpec{}, resourcev1.ResourceClaimTemplateSpec{}},
	{dra.AllocationResult{}, resourcev1.AllocationResult{}},
	{dra.DeviceAttribute{}, resourcev1.DeviceAttribute{}},
}

// A member is [name it is shown by, name in the API, type, flags]. A name in the API that begins with ^ is a member of
// what this struct is in. Types: s text, n number, b bool, Q Quantity, I IntOrString, T Time, R what is there as it is, @name a struct. Flags:
// r list, m map, p pointer, o left out where empty.
type member [4]string

var structs = map[string][]member{}

// Members of a pod's spec that stand in the security context inside.
var ofParent = map[string]bool{"HostNetwork": true, "HostPID": true, "HostIPC": true, "ShareProcessNamespace": true, "HostUsers": true}

func main() {
	for _, root := range roots {
		add(reflect.TypeOf(root[0]), reflect.TypeOf(root[1]))
	}
	names := []string{}
	for name := range structs {
		names = append(names, name)
	}
	sort.Strings(names)
	lines := []string{}
	for _, name := range names {
		lines = append(lines, text(name)+":"+text(structs[name]))
	}
	fmt.Printf("{\n%s\n}\n", strings.Join(lines, ",\n"))
}

func add(internal, api reflect.Type) string {
	name := internal.String()
	if _, known := structs[name]; !known {
		// Set before it is filled: a struct may hold itself.
		structs[name] = nil
		structs[name] = members(internal, api)
	}
	return name
}

func members(internal, api reflect.Type) (result []member) {
	for i := range internal.NumField() {
		f := internal.Field(i)
		tag := strings.Split(f.Tag.Get("json"), ",")
		if tag[0] == "-" || f.Type == reflect.TypeOf(metav1.TypeMeta{}) {
			continue
		}
		same, found := api.FieldByName(f.Name)
		if f.Anonymous && tag[0] == "" {
			if !found {
				log.Fatalf("%s.%s: not in the API", internal, f.Name)
			}
			inner := members(f.Type, same.Type)
			// What has a name of its own in the API is one step down there.
			if outer := strings.Split(same.Tag.Get("json"), ",")[0]; outer != "" {
				for j := range inner {
					inner[j][1] = outer + "." + inner[j][1]
				}
			}
			result = append(result, inner...)
			continue
		}
		shown := f.Name
		if tag[0] != "" {
			shown = tag[0]
		}
		apiName := ""
		if found {
			apiName = strings.Split(same.Tag.Get("json"), ",")[0]
		} else if ofParent[f.Name] {
			outer, _ := reflect.TypeOf(corev1.PodSpec{}).FieldByName(f.Name)
			apiName, same = "^"+strings.Split(outer.Tag.Get("json"), ",")[0], outer
		} else {
			log.Fatalf("%s.%s: not in the API", internal, f.Name)
		}
		code, flags := code(f.Type, same.Type)
		if strings.Contains(f.Tag.Get("json"), "omit") {
			flags += "o"
		}
		result = append(result, member{shown, apiName, code, flags})
	}
	return result
}

func code(t, api reflect.Type) (string, string) {
	for api.Kind() == reflect.Pointer {
		api = api.Elem()
	}
	switch t {
	case reflect.TypeOf(resource.Quantity{}):
		return "Q", ""
	case reflect.TypeOf(intstr.IntOrString{}):
		return "I", ""
	case reflect.TypeOf(metav1.Time{}):
		return "T", ""
	case reflect.TypeOf(metav1.FieldsV1{}):
		return "s", ""
	case reflect.TypeOf(runtime.RawExtension{}):
		return "R", ""
	}
	switch t.Kind() {
	case reflect.Pointer:
		inner, flags := code(t.Elem(), api)
		return inner, flags + "p"
	case reflect.Slice:
		inner, flags := code(t.Elem(), api.Elem())
		return inner, flags + "r"
	case reflect.Map:
		inner, flags := code(t.Elem(), api.Elem())
		return inner, flags + "m"
	case reflect.Struct:
		return "@" + add(t, api), ""
	case reflect.String:
		return "s", ""
	case reflect.Bool:
		return "b", ""
	case reflect.Int, reflect.Int32, reflect.Int64:
		return "n", ""
	}
	panic(fmt.Sprintf("no form known of %s", t))
}

func text(value any) string {
	encoded, err := json.Marshal(value)
	if err != nil {
		log.Fatal(err)
	}
	return string(encoded)
}
