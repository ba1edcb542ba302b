// The command `kubectl kcp bind` of the CNCF project kcp, without the other commands of its plugin.
package main

import (
	"fmt"
	"os"

	bind "github.com/kcp-dev/cli/pkg/bind/cmd"
	"k8s.io/cli-runtime/pkg/genericclioptions"
)

func main() {
	command := bind.New(genericclioptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr})
	if err := command.Execute(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
