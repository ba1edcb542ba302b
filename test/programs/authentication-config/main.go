// Checks AuthenticationConfigurations as kube-apiserver does at its start. Reads one JSON document per line and answers each
// with one line: the errors of decoding, or those of validation.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/install"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"
)

type answer struct {
	Decoding string   `json:"decoding,omitempty"`
	Errors   []string `json:"errors"`
}

// The issuers of ServiceAccount tokens, which no configuration may name.
var disallowed = []string{"https://kubernetes.default.svc"}

func main() {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDecoder()
	compiler := authenticationcel.NewDefaultCompiler()
	lines := bufio.NewReader(os.Stdin)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		found := answer{Errors: []string{}}
		object, _, err := decoder.Decode(line, nil, nil)
		config, isConfig := object.(*apiserver.AuthenticationConfiguration)
		switch {
		case err != nil:
			found.Decoding = err.Error()
		case !isConfig:
			found.Decoding = fmt.Sprintf("expected AuthenticationConfiguration, got %T", object)
		default:
			for _, one := range validation.ValidateAuthenticationConfiguration(compiler, config, disallowed) {
				found.Errors = append(found.Errors, one.Error())
			}
		}
		text, err := json.Marshal(found)
		utilruntime.Must(err)
		fmt.Println(string(text))
	}
}
