package main

import (
	"sort"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kubernetes/pkg/generated/openapi"
)

// enums are the allowed values that a server's documents contain and the published ones do not: by definition, then by
// field; "field[]" means the items of a list, "field{}" the values of a map.
func enums() map[string]map[string][]any {
	result := map[string]map[string][]any{}
	definitions := openapi.GetOpenAPIDefinitions(func(path string) spec.Ref { return spec.Ref{} })
	for path, definition := range definitions {
		fields := map[string][]any{}
		for name, property := range definition.Schema.Properties {
			if len(property.Enum) > 0 {
				fields[name] = sorted(property.Enum)
			}
			if property.Items != nil && property.Items.Schema != nil && len(property.Items.Schema.Enum) > 0 {
				fields[name+"[]"] = sorted(property.Items.Schema.Enum)
			}
			if values := property.AdditionalProperties; values != nil && values.Schema != nil && len(values.Schema.Enum) > 0 {
				fields[name+"{}"] = sorted(values.Schema.Enum)
			}
		}
		unstable := strings.Contains(path, "alpha") || strings.Contains(path, "beta") && !strings.Contains(path, "admissionregistration")
		if len(fields) > 0 && strings.HasPrefix(path, "k8s.io/") && !unstable {
			result[strings.ReplaceAll(strings.TrimPrefix(path, "k8s.io/"), "/", ".")] = fields
		}
	}
	return result
}

func sorted(values []any) []any {
	sort.Slice(values, func(i, j int) bool { return values[i].(string) < values[j].(string) })
	return values
}
