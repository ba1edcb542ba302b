package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

const (
	steadyNamespace = "go-steady"
	steadyWriters   = 20
	// Of each writer: half of its requests are writes, half reads.
	steadyPause = 100 * time.Millisecond
)

// steadySeconds is how long the scenario runs, from the environment.
func steadySeconds() time.Duration {
	if n, err := strconv.Atoi(os.Getenv("KCP_STEADY_SECONDS")); err == nil {
		return time.Duration(n) * time.Second
	}
	return 2 * time.Second
}

// steadyResult is printed as one line of JSON.
type steadyResult struct {
	Requests  int            `json:"requests"`
	Writes    int            `json:"writes"`
	Refused   int            `json:"refused"`
	Errors    map[string]int `json:"errors"`
	Lost      []string       `json:"lost"`
	Gaps      []string       `json:"gaps"`
	Events    int            `json:"events"`
	LongestMs int64          `json:"longestMs"`
}

// steady sends 200 requests a second for a while, and follows one watch meanwhile. It fails if an acknowledged write is lost or
// the watch skips one; errors that are left after client-go's own retries are counted and printed.
func steady(ctx context.Context, config *rest.Config, _ *recorder) error {
	result := &steadyResult{Errors: map[string]int{}, Lost: []string{}, Gaps: []string{}}
	var mu sync.Mutex
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(q *http.Request) (*http.Response, error) {
			answer, err := next.RoundTrip(q)
			if answer != nil && (answer.StatusCode == 429 || answer.StatusCode == 503) {
				mu.Lock()
				result.Refused++
				mu.Unlock()
			}
			return answer, err
		})
	})
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	if err := newNamespace(ctx, client, steadyNamespace); err != nil {
		return err
	}
	configMaps := client.CoreV1().ConfigMaps(steadyNamespace)
	for w := range steadyWriters {
		made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: steadyName(w)}, Data: map[string]string{"n": "0"}}
		if _, err := configMaps.Create(ctx, made, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	list, err := configMaps.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	watcher, err := watchtools.NewRetryWatcher(list.ResourceVersion, &cache.ListWatch{
		WatchFunc: func(options metav1.ListOptions) (watch.Interface, error) { return configMaps.Watch(ctx, options) },
	})
	if err != nil {
		return err
	}
	defer watcher.Stop()
	seen := map[string]map[string]bool{}
	watched := make(chan error, 1)
	go func() {
		for event := range watcher.ResultChan() {
			object, ok := event.Object.(*corev1.ConfigMap)
			if !ok {
				watched <- fmt.Errorf("the watch ended: %v", apierrors.FromObject(event.Object))
				return
			}
			mu.Lock()
			result.Events++
			if seen[object.Name] == nil {
				seen[object.Name] = map[string]bool{}
			}
			seen[object.Name][object.Data["n"]] = true
			mu.Unlock()
		}
	}()
	acknowledged := make([][]int, steadyWriters)
	end := time.Now().Add(steadySeconds())
	var writers sync.WaitGroup
	for w := range steadyWriters {
		writers.Add(1)
		go func() {
			defer writers.Done()
			last, tried := 0, 0
			for n := 1; time.Now().Before(end); n++ {
				began := time.Now()
				var err error
				if n%2 == 1 {
					tried = n
					patch := []byte(fmt.Sprintf(`{"data":{"n":"%d"}}`, n))
					_, err = configMaps.Patch(ctx, steadyName(w), types.MergePatchType, patch, metav1.PatchOptions{})
					if err == nil {
						last = n
						acknowledged[w] = append(acknowledged[w], n)
					}
				} else {
					var got *corev1.ConfigMap
					got, err = configMaps.Get(ctx, steadyName(w), metav1.GetOptions{})
					if err == nil {
						if value, _ := strconv.Atoi(got.Data["n"]); value < last || value > tried {
							mu.Lock()
							result.Lost = append(result.Lost, fmt.Sprintf("%s is at %d after %d", got.Name, value, last))
							mu.Unlock()
						}
					}
				}
				took := time.Since(began)
				mu.Lock()
				result.Requests++
				result.LongestMs = max(result.LongestMs, took.Milliseconds())
				if err != nil {
					result.Errors[err.Error()]++
				}
				mu.Unlock()
				time.Sleep(steadyPause - took)
			}
		}()
	}
	writers.Wait()
	complete := func() bool {
		mu.Lock()
		defer mu.Unlock()
		result.Writes, result.Gaps = 0, []string{}
		for w, all := range acknowledged {
			for _, n := range all {
				result.Writes++
				if !seen[steadyName(w)][strconv.Itoa(n)] {
					result.Gaps = append(result.Gaps, fmt.Sprintf("%s: %d was not seen", steadyName(w), n))
				}
			}
		}
		return len(result.Gaps) == 0
	}
	limit, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	missing := until(limit, "every write in the watch", complete)
	line, _ := json.Marshal(result)
	fmt.Println(string(line))
	select {
	case err := <-watched:
		return err
	default:
	}
	if missing != nil {
		return missing
	}
	return want(len(result.Lost) == 0, "acknowledged writes are lost: %v", result.Lost)
}

func steadyName(writer int) string { return fmt.Sprintf("steady-%d", writer) }
