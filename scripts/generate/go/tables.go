package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource/tableconvertor"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-aggregator/pkg/apis/apiregistration"
	apiserviceetcd "k8s.io/kube-aggregator/pkg/registry/apiservice/etcd"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/printers"
	printersinternal "k8s.io/kubernetes/pkg/printers/internalversion"
	printerstorage "k8s.io/kubernetes/pkg/printers/storage"

	// Converts objects to the types that the printers accept.
	_ "k8s.io/kubernetes/pkg/apis/admissionregistration/install"
	_ "k8s.io/kubernetes/pkg/apis/flowcontrol/install"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	_ "k8s.io/kubernetes/pkg/apis/node/install"
)

// A column is [name, type, format, priority].
type column [4]any

func convertor() printerstorage.TableConvertor {
	return printerstorage.TableConvertor{TableGenerator: printers.NewTableGenerator().With(printersinternal.AddHandlers)}
}

// kube-apiserver prints this kind with the default columns although it has a printer: measured.
var printerUnused = "storage.k8s.io/v1/CSIStorageCapacity"

// tableColumns are the columns of every kind that has its own, by "group/version/kind".
func tableColumns(scheme *runtime.Scheme) map[string][]column {
	result := map[string][]column{}
	for _, gv := range served {
		for kind := range scheme.KnownTypes(gv) {
			if !isServed(gv, kind) {
				continue
			}
			internal, err := legacyscheme.Scheme.New(schema.GroupVersionKind{Group: gv.Group, Version: runtime.APIVersionInternal, Kind: kind})
			if err != nil || !legacyscheme.Scheme.Recognizes(gv.WithKind(kind)) {
				continue
			}
			if len(kind) > 4 && kind[len(kind)-4:] == "List" {
				continue
			}
			if columns := columnsOf(internal); columns != nil && gv.String()+"/"+kind != printerUnused {
				result[gv.String()+"/"+kind] = columns
			}
		}
	}
	// The aggregator prints its kind itself.
	table, err := (&apiserviceetcd.REST{}).ConvertToTable(context.Background(), &apiregistration.APIServiceList{}, nil)
	must(err)
	result["apiregistration.k8s.io/v1/APIService"] = columnsIn(table)
	return result
}

func columnsOf(object runtime.Object) (columns []column) {
	// Some printers cannot print an empty object; those kinds have a list, and an empty list prints.
	list, err := legacyscheme.Scheme.New(mustKind(object, "List"))
	if err == nil {
		object = list
	}
	table, err := convertor().ConvertToTable(context.Background(), object, nil)
	if err != nil {
		return nil
	}
	return columnsIn(table)
}

func columnsIn(table *metav1.Table) (columns []column) {
	for _, c := range table.ColumnDefinitions {
		columns = append(columns, column{c.Name, c.Type, c.Format, c.Priority})
	}
	return columns
}

func mustKind(object runtime.Object, suffix string) schema.GroupVersionKind {
	kinds, _, err := legacyscheme.Scheme.ObjectKinds(object)
	must(err)
	return schema.GroupVersionKind{Group: kinds[0].Group, Version: kinds[0].Version, Kind: kinds[0].Kind + suffix}
}

type tableVector struct {
	Object  json.RawMessage `json:"object"`
	Columns json.RawMessage `json:"columns,omitempty"`
	Cells   []any           `json:"cells"`
}

var ago = regexp.MustCompile(`"@-(\d+)([su])"`)

// tableVectors prints the objects of the corpus; "@-90s" in them stands for a time 90 seconds ago, "@-90u" for one with
// microseconds. Objects with printer columns are custom resources.
func tableVectors(file string) []tableVector {
	text, err := os.ReadFile(file)
	must(err)
	vectors := []tableVector{}
	must(json.Unmarshal(text, &vectors))
	for i, vector := range vectors {
		now := time.Now()
		dated := ago.ReplaceAllFunc(vector.Object, func(match []byte) []byte {
			parts := ago.FindSubmatch(match)
			seconds, _ := strconv.Atoi(string(parts[1]))
			layout := time.RFC3339
			if string(parts[2]) == "u" {
				layout = metav1.RFC3339Micro
			}
			// Adds a little, because fractions of seconds are truncated.
			at := now.Add(-time.Duration(seconds)*time.Second - 300*time.Millisecond)
			return []byte(fmt.Sprintf("%q", at.UTC().Format(layout)))
		})
		var table *metav1.Table
		if vector.Columns == nil {
			table = builtInTable(dated)
		} else {
			table = customTable(dated, vector.Columns)
		}
		if len(table.Rows) != 1 {
			panic(string(vector.Object))
		}
		vectors[i].Cells = table.Rows[0].Cells
	}
	return vectors
}

func builtInTable(text []byte) *metav1.Table {
	versioned, gvk, err := legacyscheme.Codecs.UniversalDeserializer().Decode(text, nil, nil)
	must(err)
	internal, err := legacyscheme.Scheme.ConvertToVersion(versioned, schema.GroupVersion{Group: gvk.Group, Version: runtime.APIVersionInternal})
	must(err)
	table, err := convertor().ConvertToTable(context.Background(), internal, &metav1.TableOptions{})
	must(err)
	return table
}

func customTable(text, columns []byte) *metav1.Table {
	definitions := []apiextensionsv1.CustomResourceColumnDefinition{}
	must(json.Unmarshal(columns, &definitions))
	custom, err := tableconvertor.New(definitions)
	must(err)
	object := &unstructured.Unstructured{}
	must(object.UnmarshalJSON(text))
	table, err := custom.ConvertToTable(context.Background(), object, &metav1.TableOptions{})
	must(err)
	return table
}
