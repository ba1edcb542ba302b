// Command generate writes the facts that are in Kubernetes' Go packages but not in its documents: the protobuf layout
// of every built-in kind, and test vectors for the code that decodes protobuf and prints tables.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"log"
	"os"
	"path/filepath"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1beta1 "k8s.io/apimachinery/pkg/apis/meta/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// served are the group versions of a logical cluster; every server has the last one.
var served = []schema.GroupVersion{
	{Group: "", Version: "v1"},
	{Group: "admissionregistration.k8s.io", Version: "v1"},
	{Group: "admissionregistration.k8s.io", Version: "v1beta1"},
	{Group: "apiextensions.k8s.io", Version: "v1"},
	{Group: "apiregistration.k8s.io", Version: "v1"},
	{Group: "apps", Version: "v1"},
	{Group: "authentication.k8s.io", Version: "v1"},
	{Group: "authorization.k8s.io", Version: "v1"},
	{Group: "autoscaling", Version: "v1"},
	{Group: "autoscaling", Version: "v2"},
	{Group: "batch", Version: "v1"},
	{Group: "certificates.k8s.io", Version: "v1"},
	{Group: "coordination.k8s.io", Version: "v1"},
	{Group: "discovery.k8s.io", Version: "v1"},
	{Group: "events.k8s.io", Version: "v1"},
	{Group: "flowcontrol.apiserver.k8s.io", Version: "v1"},
	{Group: "networking.k8s.io", Version: "v1"},
	{Group: "node.k8s.io", Version: "v1"},
	{Group: "policy", Version: "v1"},
	{Group: "rbac.authorization.k8s.io", Version: "v1"},
	{Group: "resource.k8s.io", Version: "v1"},
	{Group: "scheduling.k8s.io", Version: "v1"},
	{Group: "storage.k8s.io", Version: "v1"},
	{Group: "apidiscovery.k8s.io", Version: "v2"},
	{Group: "meta.k8s.io", Version: "v1"},
	{Group: "meta.k8s.io", Version: "v1beta1"},
}

// isServed tells whether a kind of these group versions is served: of a beta version only what has no stable version.
func isServed(gv schema.GroupVersion, kind string) bool {
	return !strings.Contains(gv.Version, "beta") || gv.Group == "meta.k8s.io" || strings.HasPrefix(kind, "MutatingAdmissionPolicy")
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	must(clientscheme.AddToScheme(scheme))
	must(apiextensionsv1.AddToScheme(scheme))
	must(apidiscoveryv2.AddToScheme(scheme))
	must(apiregistrationv1.AddToScheme(scheme))
	must(metav1.AddMetaToScheme(scheme))
	must(metav1beta1.AddMetaToScheme(scheme))
	return scheme
}

func main() {
	out := flag.String("out", "", "directory to write to")
	corpus := flag.String("table-corpus", "", "file with objects to print as table rows")
	flag.Parse()
	if *out == "" || *corpus == "" {
		flag.Usage()
		os.Exit(2)
	}
	scheme := newScheme()
	tables := readTypes(scheme)
	write(*out, "protobuf.json", tables)
	write(*out, "protobuf-vectors.json", protobufVectors(scheme))
	write(*out, "enums.json", enums())
	write(*out, "table-columns.json", tableColumns(scheme))
	write(*out, "table-vectors.json", tableVectors(*corpus))
}

func write(dir, name string, value any) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	must(encoder.Encode(value))
	must(os.WriteFile(filepath.Join(dir, name), buffer.Bytes(), 0o644))
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
