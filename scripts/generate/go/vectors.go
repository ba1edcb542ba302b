package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand"
	"reflect"
	"sort"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// vector is an object as clients send it, and as Go encodes it to JSON.
type vector struct {
	Title    string          `json:"title"`
	Protobuf string          `json:"protobuf"`
	Object   json.RawMessage `json:"object"`
}

// filledKinds have an object with most fields set; every kind has an empty one.
var filledKinds = map[string]bool{
	"v1/Pod": true, "v1/Service": true, "v1/Secret": true, "v1/ConfigMap": true, "v1/Event": true, "v1/Namespace": true, "v1/Node": true,
	"v1/PersistentVolumeClaim": true, "v1/Binding": true, "v1/ServiceAccount": true, "v1/Endpoints": true, "v1/ResourceQuota": true, "v1/LimitRange": true,
	"apps/v1/Deployment": true, "apps/v1/ControllerRevision": true, "apps/v1/DaemonSet": true, "batch/v1/CronJob": true,
	"authentication.k8s.io/v1/TokenRequest": true, "authentication.k8s.io/v1/TokenReview": true,
	"authorization.k8s.io/v1/SubjectAccessReview": true, "authorization.k8s.io/v1/SelfSubjectAccessReview": true,
	"autoscaling/v1/Scale": true, "autoscaling/v2/HorizontalPodAutoscaler": true, "policy/v1/Eviction": true, "policy/v1/PodDisruptionBudget": true,
	"coordination.k8s.io/v1/Lease": true, "discovery.k8s.io/v1/EndpointSlice": true, "networking.k8s.io/v1/Ingress": true,
	"networking.k8s.io/v1/NetworkPolicy": true, "rbac.authorization.k8s.io/v1/ClusterRole": true, "events.k8s.io/v1/Event": true,
	"certificates.k8s.io/v1/CertificateSigningRequest": true, "apiextensions.k8s.io/v1/CustomResourceDefinition": true,
	"apiregistration.k8s.io/v1/APIService":                           true,
	"admissionregistration.k8s.io/v1/ValidatingWebhookConfiguration": true, "storage.k8s.io/v1/CSIStorageCapacity": true,
	"v1/Status": true, "v1/DeleteOptions": true, "flowcontrol.apiserver.k8s.io/v1/FlowSchema": true, "resource.k8s.io/v1/ResourceClaim": true,
}

func protobufVectors(scheme *runtime.Scheme) []vector {
	serializer := protobuf.NewSerializer(scheme, scheme)
	vectors := []vector{}
	for _, gv := range served {
		kinds := []string{}
		for kind := range scheme.KnownTypes(gv) {
			kinds = append(kinds, kind)
		}
		sort.Strings(kinds)
		for _, kind := range kinds {
			t := scheme.KnownTypes(gv)[kind]
			name := gv.String() + "/" + kind
			// The rows of a Table are not part of its protobuf encoding.
			if !reflect.PointerTo(t).Implements(messageType) || kind == "WatchEvent" || kind == "Table" ||
				!isServed(gv, kind) && !commonKinds[kind] {
				continue
			}
			if commonKinds[kind] && !filledKinds[name] {
				continue
			}
			vectors = append(vectors, newVector(serializer, gv.WithKind(kind), name+" empty", reflect.New(t)))
			if filledKinds[name] {
				for seed := range int64(2) {
					object := reflect.New(t)
					filler{random: rand.New(rand.NewSource(seed)), all: seed == 0}.fill(object.Elem(), 0)
					vectors = append(vectors, newVector(serializer, gv.WithKind(kind), fmt.Sprintf("%s filled %d", name, seed), object))
				}
			}
		}
	}
	return vectors
}

func newVector(serializer *protobuf.Serializer, gvk schema.GroupVersionKind, title string, value reflect.Value) vector {
	object := value.Interface().(runtime.Object)
	object.GetObjectKind().SetGroupVersionKind(gvk)
	var encoded bytes.Buffer
	must(serializer.Encode(object, &encoded))
	decoded, _, err := serializer.Decode(encoded.Bytes(), nil, nil)
	must(err)
	decoded.GetObjectKind().SetGroupVersionKind(gvk)
	text, err := json.Marshal(decoded)
	must(err)
	return vector{title, base64.StdEncoding.EncodeToString(encoded.Bytes()), text}
}

// filler sets every field (all) or about half of them, identically in every run.
type filler struct {
	random *rand.Rand
	all    bool
}

func (f filler) skip() bool { return !f.all && f.random.Intn(2) == 0 }

func (f filler) text() string {
	words := []string{"web", "größe", "日本", "a b", "x\ty", "\"q\"", "<&>", "\u2028", "1.2.3", ""}
	if f.all {
		return words[f.random.Intn(3)]
	}
	return words[f.random.Intn(len(words))]
}

func (f filler) special(v reflect.Value) bool {
	at := time.Unix(1700000000+f.random.Int63n(1000000), 123456000).UTC()
	switch v.Addr().Interface().(type) {
	case *metav1.Time:
		v.Set(reflect.ValueOf(metav1.Time{Time: at}))
	case *metav1.MicroTime:
		v.Set(reflect.ValueOf(metav1.MicroTime{Time: at}))
	case *metav1.Duration:
		v.Set(reflect.ValueOf(metav1.Duration{Duration: time.Duration(f.random.Int63n(1e15))}))
	case *resource.Quantity:
		quantities := []string{"100m", "1", "1Gi", "1536Mi", "0", "-5", "12e6", "2500m"}
		v.Set(reflect.ValueOf(resource.MustParse(quantities[f.random.Intn(len(quantities))])))
	case *intstr.IntOrString:
		values := []intstr.IntOrString{intstr.FromInt32(8080), intstr.FromString("25%"), intstr.FromInt32(0), intstr.FromInt32(-1)}
		v.Set(reflect.ValueOf(values[f.random.Intn(len(values))]))
	case *runtime.RawExtension:
		v.Set(reflect.ValueOf(runtime.RawExtension{Raw: []byte(`{"kind":"K","apiVersion":"g/v1","a":[1,2.5,null,"\u00e9"]}`)}))
	case *metav1.FieldsV1:
		v.Set(reflect.ValueOf(metav1.FieldsV1{Raw: []byte(`{"f:spec":{".":{},"f:x":{}}}`)}))
	case *apiextensionsv1.JSON:
		v.Set(reflect.ValueOf(apiextensionsv1.JSON{Raw: []byte(`{"b":[true]}`)}))
	case *apiextensionsv1.JSONSchemaPropsOrBool:
		v.Set(reflect.ValueOf(apiextensionsv1.JSONSchemaPropsOrBool{Allows: f.random.Intn(2) == 0}))
	case *apiextensionsv1.JSONSchemaPropsOrArray:
		v.Set(reflect.ValueOf(apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{Type: "string"}}))
	case *apiextensionsv1.JSONSchemaPropsOrStringArray:
		v.Set(reflect.ValueOf(apiextensionsv1.JSONSchemaPropsOrStringArray{Property: []string{"a", "b"}}))
	default:
		return false
	}
	return true
}

func (f filler) fill(v reflect.Value, depth int) {
	if f.special(v) {
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Type().Field(i)
			if field.Type == reflect.TypeOf(metav1.TypeMeta{}) || !field.IsExported() || field.Tag.Get("protobuf") == "-" {
				continue
			}
			if !f.skip() {
				f.fill(v.Field(i), depth+1)
			}
		}
	case reflect.Pointer:
		if depth < 14 && !(v.Type() == reflect.TypeOf(&apiextensionsv1.JSONSchemaProps{}) && depth > 8) {
			v.Set(reflect.New(v.Type().Elem()))
			f.fill(v.Elem(), depth+1)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte{0, 1, 0xfe, 0xff, byte(f.random.Intn(256))}[:f.random.Intn(6)])
			return
		}
		if v.Type().Elem() == reflect.TypeOf(apiextensionsv1.JSONSchemaProps{}) && depth > 8 {
			return
		}
		count := 1 + f.random.Intn(2)
		v.Set(reflect.MakeSlice(v.Type(), count, count))
		for i := range count {
			f.fill(v.Index(i), depth+1)
		}
	case reflect.Map:
		if v.Type().Elem() == reflect.TypeOf(apiextensionsv1.JSONSchemaProps{}) && depth > 8 {
			return
		}
		v.Set(reflect.MakeMap(v.Type()))
		for _, key := range []string{"b", "a", ""}[:1+f.random.Intn(3)] {
			value := reflect.New(v.Type().Elem()).Elem()
			f.fill(value, depth+1)
			v.SetMapIndex(reflect.ValueOf(key).Convert(v.Type().Key()), value)
		}
	case reflect.String:
		v.SetString(f.text())
	case reflect.Bool:
		v.SetBool(f.all || f.random.Intn(2) == 0)
	case reflect.Int32, reflect.Int, reflect.Int64:
		numbers := []int64{1, 7, 300, -1, -2147483648, 2147483647, 0}
		if v.Kind() == reflect.Int64 {
			numbers = append(numbers, 1<<53-1, -(1<<53)+1, 5000000000)
		}
		v.SetInt(numbers[f.random.Intn(len(numbers))])
	case reflect.Float64:
		v.SetFloat([]float64{0.5, -3, 1e21, 0}[f.random.Intn(4)])
	default:
		panic(v.Kind().String())
	}
}
