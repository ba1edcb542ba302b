// Prints the initial objects of every Kubernetes cluster, as compact JSON: RBAC bootstrap policy (with aggregated
// ClusterRoles filled in), system priority classes, flow control. Run by scripts/generate/bootstrap-objects.sh within
// the pinned Kubernetes module.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"sort"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	flowcontrolbootstrap "k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap"
	scheduling "k8s.io/kubernetes/pkg/apis/scheduling/v1"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	var objects []any
	add := func(object any, kind, apiVersion string) error {
		text, err := json.Marshal(object)
		if err != nil {
			return err
		}
		fields := map[string]any{}
		if err := json.Unmarshal(text, &fields); err != nil {
			return err
		}
		fields["kind"], fields["apiVersion"] = kind, apiVersion
		delete(fields["metadata"].(map[string]any), "creationTimestamp")
		objects = append(objects, fields)
		return nil
	}
	const rbac, flow = "rbac.authorization.k8s.io/v1", "flowcontrol.apiserver.k8s.io/v1"

	clusterRoles := append(bootstrappolicy.ClusterRoles(), bootstrappolicy.ControllerRoles()...)
	for _, role := range aggregated(clusterRoles) {
		if role.Rules == nil {
			role.Rules = []rbacv1.PolicyRule{}
		}
		if err := add(role, "ClusterRole", rbac); err != nil {
			return err
		}
	}
	for _, binding := range append(bootstrappolicy.ClusterRoleBindings(), bootstrappolicy.ControllerRoleBindings()...) {
		if err := add(binding, "ClusterRoleBinding", rbac); err != nil {
			return err
		}
	}
	for _, namespace := range sortedKeys(bootstrappolicy.NamespaceRoles()) {
		for _, role := range bootstrappolicy.NamespaceRoles()[namespace] {
			role.Namespace = namespace
			if err := add(role, "Role", rbac); err != nil {
				return err
			}
		}
	}
	for _, namespace := range sortedKeys(bootstrappolicy.NamespaceRoleBindings()) {
		for _, binding := range bootstrappolicy.NamespaceRoleBindings()[namespace] {
			binding.Namespace = namespace
			if err := add(binding, "RoleBinding", rbac); err != nil {
				return err
			}
		}
	}
	for _, class := range scheduling.SystemPriorityClasses() {
		class := class.DeepCopy()
		scheduling.SetObjectDefaults_PriorityClass(class)
		class.Generation = 1
		if err := add((*schedulingv1.PriorityClass)(class), "PriorityClass", "scheduling.k8s.io/v1"); err != nil {
			return err
		}
	}
	schemas := append([]*flowcontrolv1.FlowSchema{}, flowcontrolbootstrap.MandatoryFlowSchemas...)
	for _, schema := range append(schemas, flowcontrolbootstrap.SuggestedFlowSchemas...) {
		schema := schema.DeepCopy()
		stampFlowControl(&schema.ObjectMeta)
		if err := add(schema, "FlowSchema", flow); err != nil {
			return err
		}
	}
	levels := append([]*flowcontrolv1.PriorityLevelConfiguration{}, flowcontrolbootstrap.MandatoryPriorityLevelConfigurations...)
	for _, level := range append(levels, flowcontrolbootstrap.SuggestedPriorityLevelConfigurations...) {
		level := level.DeepCopy()
		stampFlowControl(&level.ObjectMeta)
		if err := add(level, "PriorityLevelConfiguration", flow); err != nil {
			return err
		}
	}
	return print(objects)
}

// One object per line: readable diffs at hardly any extra size.
func print(objects []any) error {
	out := bufio.NewWriter(os.Stdout)
	fmt.Fprint(out, "[")
	for i, object := range objects {
		text, err := json.Marshal(object)
		if err != nil {
			return err
		}
		if i > 0 {
			fmt.Fprint(out, ",")
		}
		fmt.Fprintf(out, "\n%s", text)
	}
	fmt.Fprintln(out, "\n]")
	return out.Flush()
}

func stampFlowControl(meta *metav1.ObjectMeta) {
	meta.Generation = 1
	meta.Annotations = map[string]string{flowcontrolv1.AutoUpdateAnnotationKey: "true"}
}

// The result of the aggregation controller, which runs a moment after the start.
func aggregated(roles []rbacv1.ClusterRole) []rbacv1.ClusterRole {
	sort.Slice(roles, func(i, j int) bool { return roles[i].Name < roles[j].Name })
	out := make([]rbacv1.ClusterRole, len(roles))
	// Repeated until nothing changes: edit is aggregated into admin, view into edit.
	for {
		changed := false
		for i := range roles {
			out[i] = *roles[i].DeepCopy()
			if roles[i].AggregationRule == nil {
				continue
			}
			out[i].Rules = aggregate(roles, roles[i])
			changed = changed || !equality.Semantic.DeepEqual(out[i].Rules, roles[i].Rules)
		}
		copy(roles, out)
		if !changed {
			return out
		}
	}
}

func aggregate(roles []rbacv1.ClusterRole, into rbacv1.ClusterRole) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for i := range into.AggregationRule.ClusterRoleSelectors {
		selector, err := metav1.LabelSelectorAsSelector(&into.AggregationRule.ClusterRoleSelectors[i])
		if err != nil {
			panic(err)
		}
		for _, role := range roles {
			if role.Name == into.Name || !selector.Matches(labels.Set(role.Labels)) {
				continue
			}
			for _, rule := range role.Rules {
				if !contains(rules, rule) {
					rules = append(rules, rule)
				}
			}
		}
	}
	return rules
}

func contains(rules []rbacv1.PolicyRule, rule rbacv1.PolicyRule) bool {
	for _, have := range rules {
		if equality.Semantic.DeepEqual(have, rule) {
			return true
		}
	}
	return false
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}
