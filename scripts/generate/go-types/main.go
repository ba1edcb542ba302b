// Command go-types writes how every built-in kind looks as a Go struct: which members it has, in which order they are
// encoded, which are left out when empty. The server normalises and fills in built-in objects by this table.
//
//	go run . > ../../../src/virtualapi/kinds/resources/typed/generated/go-types.json
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"reflect"
	"sort"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// A member is [JSON name, type, flags, Go name of the type where it is no plain one, Go name of the list or map where it is
// not made of that]. Types: b bool, i int32, l int64, s string,
// y bytes, d double, T Time, U MicroTime, D Duration, Q Quantity, I IntOrString, R any JSON, @name a struct. Flags: r list, m map,
// p pointer, o omitempty, z omitzero.
type member []string

var specials = map[reflect.Type]string{
	reflect.TypeOf(metav1.Time{}):                                  "T",
	reflect.TypeOf(metav1.MicroTime{}):                             "U",
	reflect.TypeOf(metav1.Duration{}):                              "D",
	reflect.TypeOf(resource.Quantity{}):                            "Q",
	reflect.TypeOf(intstr.IntOrString{}):                           "I",
	reflect.TypeOf(runtime.RawExtension{}):                         "R",
	reflect.TypeOf(metav1.FieldsV1{}):                              "R",
	reflect.TypeOf(apiextensionsv1.JSON{}):                         "R",
	reflect.TypeOf(apiextensionsv1.JSONSchemaPropsOrBool{}):        "R",
	reflect.TypeOf(apiextensionsv1.JSONSchemaPropsOrArray{}):       "R",
	reflect.TypeOf(apiextensionsv1.JSONSchemaPropsOrStringArray{}): "R",
}

type tables struct {
	Kinds   map[string]string   `json:"kinds"`
	Structs map[string][]member `json:"structs"`
}

func main() {
	scheme := runtime.NewScheme()
	must(clientscheme.AddToScheme(scheme))
	must(apiextensionsv1.AddToScheme(scheme))
	must(apiregistrationv1.AddToScheme(scheme))
	result := tables{map[string]string{}, map[string][]member{}}
	for gvk, t := range scheme.AllKnownTypes() {
		beta := strings.Contains(gvk.Version, "alpha") || strings.Contains(gvk.Version, "beta") && !isServedBeta(gvk)
		_, hasMeta := t.FieldByName("ObjectMeta")
		if beta || !hasMeta || gvk.Group == "extensions" || gvk.Version == runtime.APIVersionInternal {
			continue
		}
		result.Kinds[gvk.GroupVersion().String()+"/"+gvk.Kind] = result.add(t)
	}
	names := []string{}
	for name := range result.Structs {
		names = append(names, name)
	}
	sort.Strings(names)
	lines := []string{}
	for _, name := range names {
		lines = append(lines, text(name)+":"+text(result.Structs[name]))
	}
	// One struct per line, so that a new Kubernetes version is a readable change.
	fmt.Printf("{\"kinds\":%s,\n\"structs\":{\n%s\n}}\n", text(result.Kinds), strings.Join(lines, ",\n"))
}

// isServedBeta tells whether this beta version of a kind is served; the tables of scripts/generate/go have the same.
func isServedBeta(gvk schema.GroupVersionKind) bool {
	return gvk.Group == "admissionregistration.k8s.io" && strings.HasPrefix(gvk.Kind, "MutatingAdmissionPolicy")
}

func structName(t reflect.Type) string {
	path := strings.TrimPrefix(strings.TrimPrefix(t.PkgPath(), "k8s.io/api/"), "k8s.io/apimachinery/pkg/apis/")
	path = strings.TrimPrefix(path, "k8s.io/apiextensions-apiserver/pkg/apis/")
	path = strings.TrimPrefix(path, "k8s.io/kube-aggregator/pkg/apis/")
	return strings.ReplaceAll(path, "/", ".") + "." + t.Name()
}

func (r tables) add(t reflect.Type) string {
	name := structName(t)
	if _, known := r.Structs[name]; known {
		return name
	}
	// Set before it is filled: a struct may hold itself.
	r.Structs[name] = []member{}
	if members := r.members(t); members != nil {
		r.Structs[name] = members
	}
	return name
}

func (r tables) members(t reflect.Type) (result []member) {
	for i := range t.NumField() {
		f := t.Field(i)
		tag := strings.Split(f.Tag.Get("json"), ",")
		if f.Type == reflect.TypeOf(metav1.TypeMeta{}) || tag[0] == "-" || f.Tag.Get("json") == "" && !f.Anonymous {
			continue
		}
		options := tag[1:]
		sort.Strings(options)
		if tag[0] == "" {
			inlined := f.Type
			if inlined.Kind() == reflect.Pointer {
				inlined = inlined.Elem()
			}
			result = append(result, r.members(inlined)...)
			continue
		}
		code, container, named := r.code(f.Type)
		for _, option := range options {
			switch option {
			case "omitempty":
				container += "o"
			case "omitzero":
				container += "z"
			default:
				log.Fatalf("%s.%s: json option %q", t, f.Name, option)
			}
		}
		m := member{tag[0], code, container}
		if collection := collectionName(f.Type, named); collection != "" {
			m = append(m, named, collection)
		} else if named != "" {
			m = append(m, named)
		}
		result = append(result, m)
	}
	return result
}

// collectionName is what Go calls a list or map that is not simply one of its values by text.
func collectionName(t reflect.Type, value string) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Map && t.Kind() != reflect.Slice {
		return ""
	}
	plain := t.PkgPath() == "" && t.Elem().Kind() != reflect.Slice && (t.Kind() == reflect.Slice || t.Key().PkgPath() == "")
	if plain || t.String() == value {
		return ""
	}
	return t.String()
}

func (r tables) code(t reflect.Type) (code, container, named string) {
	if special, ok := specials[t]; ok {
		return special, "", ""
	}
	if t.Kind() != reflect.Struct && t.PkgPath() != "" {
		named = t.String()
	}
	switch t.Kind() {
	case reflect.Pointer:
		code, container, named = r.code(t.Elem())
		return code, container + "p", named
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "y", "", named
		}
		code, container, named = r.code(t.Elem())
		return code, container + "r", named
	case reflect.Map:
		code, container, named = r.code(t.Elem())
		return code, container + "m", named
	case reflect.Struct:
		return "@" + r.add(t), "", ""
	case reflect.String:
		return "s", "", named
	case reflect.Bool:
		return "b", "", named
	case reflect.Int, reflect.Int32:
		return "i", "", named
	case reflect.Int64:
		return "l", "", named
	case reflect.Float64:
		return "d", "", named
	}
	panic(fmt.Sprintf("no JSON form known of %s", t))
}

func text(value any) string {
	encoded, err := json.Marshal(value)
	must(err)
	return string(encoded)
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
