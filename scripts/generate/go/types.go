package main

import (
	"encoding/json"
	"fmt"
	"log"
	"reflect"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// protobufTables is the decoder's input: messages by name, each a list of fields in the order in which Go encodes them
// to JSON, and the message of each kind, by "group/version" and kind.
type protobufTables struct {
	Kinds    map[string]map[string]string `json:"kinds"`
	Messages map[string][]field           `json:"messages"`
}

// field is [number, JSON name, type, flags]. Types: b bool, i integer, s string, y bytes, d double, a capital letter for a type with its own
// JSON form, @name for a message. Flags: r repeated, m map with string keys, p pointer, o omitempty, z omitzero, n inlined in JSON.
type field [4]any

var specials = map[reflect.Type]string{
	reflect.TypeOf(metav1.Time{}):                                  "T",
	reflect.TypeOf(metav1.MicroTime{}):                             "U",
	reflect.TypeOf(metav1.Duration{}):                              "D",
	reflect.TypeOf(resource.Quantity{}):                            "Q",
	reflect.TypeOf(intstr.IntOrString{}):                           "I",
	reflect.TypeOf(runtime.RawExtension{}):                         "R",
	reflect.TypeOf(metav1.FieldsV1{}):                              "F",
	reflect.TypeOf(apiextensionsv1.JSON{}):                         "J",
	reflect.TypeOf(apiextensionsv1.JSONSchemaPropsOrBool{}):        "B",
	reflect.TypeOf(apiextensionsv1.JSONSchemaPropsOrArray{}):       "A",
	reflect.TypeOf(apiextensionsv1.JSONSchemaPropsOrStringArray{}): "S",
}

// Kinds that exist in every group version with the same meaning.
var commonKinds = map[string]bool{
	"CreateOptions": true, "DeleteOptions": true, "GetOptions": true, "ListOptions": true, "PatchOptions": true, "UpdateOptions": true,
}

type protobufMessage interface{ Unmarshal([]byte) error }

var (
	messageType   = reflect.TypeOf((*protobufMessage)(nil)).Elem()
	marshalerType = reflect.TypeOf((*json.Marshaler)(nil)).Elem()
)

func readTypes(scheme *runtime.Scheme) protobufTables {
	tables := protobufTables{Kinds: map[string]map[string]string{"*": {}}, Messages: map[string][]field{}}
	for _, gv := range served {
		kinds := map[string]string{}
		for kind, t := range scheme.KnownTypes(gv) {
			if kind == "WatchEvent" || !isServed(gv, kind) && !commonKinds[kind] || !reflect.PointerTo(t).Implements(messageType) {
				continue
			}
			name := tables.add(t)
			if commonKinds[kind] {
				tables.Kinds["*"][kind] = name
			} else {
				kinds[kind] = name
			}
		}
		tables.Kinds[gv.String()] = kinds
	}
	return tables
}

func messageName(t reflect.Type) string {
	path := strings.TrimPrefix(strings.TrimPrefix(t.PkgPath(), "k8s.io/api/"), "k8s.io/apimachinery/pkg/apis/")
	path = strings.TrimPrefix(path, "k8s.io/apiextensions-apiserver/pkg/apis/")
	path = strings.TrimPrefix(path, "k8s.io/kube-aggregator/pkg/apis/")
	return strings.ReplaceAll(path, "/", ".") + "." + t.Name()
}

func (tables protobufTables) add(t reflect.Type) string {
	name := messageName(t)
	if _, known := tables.Messages[name]; known {
		return name
	}
	tables.Messages[name] = nil
	fields := []field{}
	for i := range t.NumField() {
		if f, ok := tables.field(t, t.Field(i)); ok {
			fields = append(fields, f)
		}
	}
	tables.Messages[name] = fields
	return name
}

func (tables protobufTables) field(owner reflect.Type, f reflect.StructField) (field, bool) {
	tag := f.Tag.Get("protobuf")
	jsonTag := strings.Split(f.Tag.Get("json"), ",")
	if f.Type == reflect.TypeOf(metav1.TypeMeta{}) || jsonTag[0] == "-" {
		return field{}, false
	}
	if tag == "" || tag == "-" {
		log.Printf("%s.%s is in JSON only", owner, f.Name)
		return field{}, false
	}
	parts := strings.Split(tag, ",")
	number, err := strconv.Atoi(parts[1])
	must(err)
	flags := ""
	for _, option := range jsonTag[1:] {
		switch option {
		case "omitempty":
			flags += "o"
		case "omitzero":
			if f.Type != reflect.TypeOf(metav1.Time{}) {
				log.Fatalf("%s.%s: omitzero of a type the decoder does not know", owner, f.Name)
			}
			flags += "z"
		case "inline":
			flags += "n"
		default:
			log.Fatalf("%s.%s: json option %q", owner, f.Name, option)
		}
	}
	typeCode, container := tables.typeCode(f.Type)
	// The tag's opt or rep is ignored: it is wrong for ServiceSpec.clusterIPs and for the audience of
	// ServiceAccountTokenProjection, and the encoding follows the Go type.
	return field{number, jsonTag[0], typeCode, container + flags}, true
}

func (tables protobufTables) typeCode(t reflect.Type) (code, container string) {
	if special, ok := specials[t]; ok {
		return special, ""
	}
	switch t.Kind() {
	case reflect.Pointer:
		code, container = tables.typeCode(t.Elem())
		return code, container + "p"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "y", ""
		}
		if reflect.PointerTo(t).Implements(messageType) { // a message whose only field is the list
			if t.Elem().Kind() != reflect.String {
				log.Fatalf("list message %s", t)
			}
			return "L", ""
		}
		code, container = tables.typeCode(t.Elem())
		if container != "" {
			log.Fatalf("list of %s", t.Elem())
		}
		return code, "r"
	case reflect.Map:
		code, container = tables.typeCode(t.Elem())
		if t.Key().Kind() != reflect.String || container != "" {
			log.Fatalf("map %s", t)
		}
		return code, "m"
	case reflect.Struct:
		if t.Implements(marshalerType) || reflect.PointerTo(t).Implements(marshalerType) {
			log.Fatalf("%s writes its own JSON", t)
		}
		return "@" + tables.add(t), ""
	case reflect.String:
		return "s", ""
	case reflect.Bool:
		return "b", ""
	case reflect.Int, reflect.Int32, reflect.Int64:
		return "i", ""
	case reflect.Float64:
		return "d", ""
	}
	panic(fmt.Sprintf("no protobuf form known of %s", t))
}
