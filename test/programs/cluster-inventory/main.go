// A client of ClusterProfiles as MultiKueue and multicluster-runtime have it: the library of the Cluster Inventory API
// makes a rest.Config of each profile, with the plugin that the file of access providers names. Nothing here knows kcp.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/cluster-inventory-api/client/clientset/versioned"
	"sigs.k8s.io/cluster-inventory-api/pkg/access"
)

// report is what the program did in the cluster of one profile.
type report struct {
	Profile string `json:"profile"`
	Server  string `json:"server,omitempty"`
	Version string `json:"version,omitempty"`
	Seen    string `json:"seen,omitempty"`
	Error   string `json:"error,omitempty"`
}

// Arguments: the file of access providers, and the namespace of the profiles.
func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	reports, err := run(ctx, os.Args[1], os.Args[2])
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(reports)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, providers, namespace string) ([]report, error) {
	hub, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		return nil, err
	}
	config, err := access.NewFromFile(providers)
	if err != nil {
		return nil, err
	}
	inventory, err := versioned.NewForConfig(hub)
	if err != nil {
		return nil, err
	}
	profiles, err := inventory.ApisV1alpha1().ClusterProfiles(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	reports := []report{}
	for i := range profiles.Items {
		profile := &profiles.Items[i]
		found := report{Profile: profile.Name}
		if err := use(ctx, config, profile, &found); err != nil {
			found.Error = err.Error()
		}
		reports = append(reports, found)
	}
	return reports, nil
}

// use asks the cluster for its version, creates a ConfigMap there and sees it in a watch.
func use(ctx context.Context, config *access.Config, profile *v1alpha1.ClusterProfile, found *report) error {
	cfg, err := config.BuildConfigFromCP(profile)
	if err != nil {
		return err
	}
	found.Server = cfg.Host
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return err
	}
	version, err := client.Discovery().ServerVersion()
	if err != nil {
		return err
	}
	found.Version = version.GitVersion
	maps := client.CoreV1().ConfigMaps("default")
	list, err := maps.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	watch, err := maps.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		return err
	}
	defer watch.Stop()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "through-the-inventory-"}}
	created, err := maps.Create(ctx, object, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	for event := range watch.ResultChan() {
		if seen, ok := event.Object.(*corev1.ConfigMap); ok && seen.Name == created.Name {
			found.Seen = seen.Name
			return nil
		}
	}
	return fmt.Errorf("the watch ended without ConfigMap %q", created.Name)
}
