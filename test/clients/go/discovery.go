package main

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// discoverAll runs every kind of discovery that a client has, and repeats it after a new definition.
func discoverAll(ctx context.Context, config *rest.Config, seen *recorder) error {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	custom, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client))
	return all(
		step{"version", func() error {
			version, err := client.ServerVersion()
			if err != nil {
				return err
			}
			return want(version.Major == "1" && strings.HasPrefix(version.GitVersion, "v1."), "%+v", version)
		}},
		step{"aggregated discovery takes two requests", func() error {
			groups, resources, err := client.ServerGroupsAndResources()
			if err != nil {
				return err
			}
			asked := seen.count(func(q request) bool { return strings.Contains(q.path, "/api") })
			return want(len(groups) > 15 && len(resources) > 15 && asked <= 3, "%d groups, %d lists, %d requests", len(groups), len(resources), asked)
		}},
		step{"legacy discovery says the same", func() error {
			_, modern, err := client.ServerGroupsAndResources()
			if err != nil {
				return err
			}
			_, legacy, err := client.WithLegacy().ServerGroupsAndResources()
			if err != nil {
				return err
			}
			if len(modern) != len(legacy) {
				return want(false, "%d lists and %d", len(modern), len(legacy))
			}
			names := map[string]bool{}
			for _, list := range modern {
				for _, resource := range list.APIResources {
					names[list.GroupVersion+" "+resource.Name+" "+resource.Kind] = true
				}
			}
			for _, list := range legacy {
				for _, resource := range list.APIResources {
					name := list.GroupVersion + " " + resource.Name + " " + resource.Kind
					if !names[name] {
						return want(false, "%q is in legacy discovery only", name)
					}
					delete(names, name)
				}
			}
			if len(names) > 0 {
				return want(false, "only in aggregated discovery: %v", names)
			}
			return nil
		}},
		step{"preferred resources", func() error {
			preferred, err := client.ServerPreferredNamespacedResources()
			if err != nil {
				return err
			}
			return want(len(preferred) > 8, "%d lists", len(preferred))
		}},
		step{"kinds and short names map to resources", func() error {
			for kind, resource := range map[schema.GroupKind]string{
				{Group: "apps", Kind: "Deployment"}:                 "deployments",
				{Kind: "Endpoints"}:                                 "endpoints",
				{Group: "networking.k8s.io", Kind: "Ingress"}:       "ingresses",
				{Group: "networking.k8s.io", Kind: "NetworkPolicy"}: "networkpolicies",
			} {
				mapping, err := mapper.RESTMapping(kind)
				if err != nil {
					return err
				}
				if mapping.Resource.Resource != resource {
					return want(false, "%v is %v", kind, mapping.Resource)
				}
			}
			short := restmapper.NewShortcutExpander(mapper, client, func(string) {})
			found, err := short.ResourceFor(schema.GroupVersionResource{Resource: "deploy"})
			if err != nil {
				return err
			}
			return want(found.Resource == "deployments", "deploy is %v", found)
		}},
		step{"OpenAPI v2 as protobuf", func() error {
			document, err := client.OpenAPISchema()
			if err != nil {
				return err
			}
			return want(len(document.Definitions.AdditionalProperties) > 300, "%d definitions", len(document.Definitions.AdditionalProperties))
		}},
		step{"OpenAPI v3", func() error {
			paths, err := client.OpenAPIV3().Paths()
			if err != nil {
				return err
			}
			body, err := paths["apis/apps/v1"].Schema("application/json")
			if err != nil {
				return err
			}
			return want(strings.Contains(string(body), "io.k8s.api.apps.v1.Deployment"), "%d bytes", len(body))
		}},
		step{"a definition is found once the mapper is reset", func() error {
			if _, err := newWidgets(ctx, custom, "discovery.test.dev"); err != nil {
				return err
			}
			mapper.Reset()
			mapping, err := mapper.RESTMapping(schema.GroupKind{Group: "discovery.test.dev", Kind: "Widget"})
			if err != nil {
				return err
			}
			return want(mapping.Scope.Name() == "namespace", "%v", mapping)
		}},
	)
}
