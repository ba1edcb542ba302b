// Prints test vectors for strategic merge patch: the result of k8s.io/apimachinery for (original, patch) of real types.
// See README.md beside this file.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	appsv1 "k8s.io/api/apps/v1"
)

type vector struct {
	Title    string          `json:"title"`
	Kind     string          `json:"kind"`
	Original json.RawMessage `json:"original"`
	Patch    json.RawMessage `json:"patch"`
	Result   json.RawMessage `json:"result,omitempty"`
	Error    string          `json:"error,omitempty"`
}

func main() {
	input, err := os.ReadFile(os.Args[1])
	if err != nil {
		panic(err)
	}
	var vectors []vector
	if err := json.Unmarshal(input, &vectors); err != nil {
		panic(err)
	}
	for i := range vectors {
		v := &vectors[i]
		result, err := apply(v)
		if err != nil {
			v.Error = err.Error()
			continue
		}
		v.Result = result
	}
	output, err := json.MarshalIndent(vectors, "", "  ")
	if err != nil {
		panic(err)
	}
	fmt.Println(string(output))
}

// apply runs a case several times: a result that depends on the order of a Go map cannot be a test vector.
func apply(v *vector) (json.RawMessage, error) {
	var dataStruct interface{}
	switch v.Kind {
	case "Deployment":
		dataStruct = appsv1.Deployment{}
	case "Pod":
		dataStruct = corev1.Pod{}
	case "Service":
		dataStruct = corev1.Service{}
	case "ServiceAccount":
		dataStruct = corev1.ServiceAccount{}
	case "ConfigMap":
		dataStruct = corev1.ConfigMap{}
	default:
		panic("unknown kind " + v.Kind)
	}
	var first []byte
	for i := 0; i < 50; i++ {
		result, err := strategicpatch.StrategicMergePatch(v.Original, v.Patch, dataStruct)
		if err != nil {
			return nil, err
		}
		if first == nil {
			first = result
		} else if string(first) != string(result) {
			panic("the answer is not deterministic: " + v.Title)
		}
	}
	return first, nil
}
