// Command clients runs one scenario of a Go client against the cluster of a kubeconfig: clients KUBECONFIG SCENARIO. It
// exits 0 when every check passed, else prints the failed one. go.mod builds it with client-go 0.34, watchlist.mod with
// a client-go whose informers stream their initial list (WatchList).
package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

var scenarios = map[string]func(context.Context, *rest.Config, *recorder) error{
	"typed":     typed,
	"informers": informers,
	"dynamic":   dynamicClient,
	"lease":     leaderElection,
	"apply":     apply,
	"discovery": discoverAll,
	"pages":     pages,
	"manager":   manager,
	"steady":    steady,
}

func main() {
	klog.InitFlags(nil)
	_ = flag.Set("logtostderr", "true")
	if len(os.Args) != 3 || scenarios[os.Args[2]] == nil {
		fmt.Fprintln(os.Stderr, "usage: clients KUBECONFIG SCENARIO")
		os.Exit(2)
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	if err == nil {
		seen := &recorder{}
		config.Wrap(seen.wrap)
		config.QPS = 1000
		config.Burst = 1000
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute+steadySeconds())
		defer cancel()
		err = scenarios[os.Args[2]](ctx, config, seen)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", os.Args[2], err)
		os.Exit(1)
	}
}

// A recorder keeps the requests sent, so that a scenario can check that it used the intended protocol.
type recorder struct {
	mu       sync.Mutex
	requests []request
}

type request struct{ method, path, query, accept, contentType string }

func (r *recorder) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(q *http.Request) (*http.Response, error) {
		r.mu.Lock()
		r.requests = append(r.requests, request{
			q.Method, q.URL.Path, q.URL.RawQuery, q.Header.Get("Accept"), q.Header.Get("Content-Type"),
		})
		r.mu.Unlock()
		return next.RoundTrip(q)
	})
}

func (r *recorder) count(match func(request) bool) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := 0
	for _, q := range r.requests {
		if match(q) {
			found++
		}
	}
	return found
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(q *http.Request) (*http.Response, error) { return f(q) }

// until repeats check until it returns true, or the context ends.
func until(ctx context.Context, what string, check func() bool) error {
	for !check() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

func want(ok bool, format string, args ...any) error {
	if ok {
		return nil
	}
	return fmt.Errorf(format, args...)
}

// all runs steps in order up to the first failure, and names the failed step.
func all(steps ...step) error {
	for _, s := range steps {
		if err := s.do(); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

type step struct {
	name string
	do   func() error
}

func isProtobuf(q request) bool { return strings.Contains(q.contentType, "protobuf") }

func ptr[T any](value T) *T { return &value }
