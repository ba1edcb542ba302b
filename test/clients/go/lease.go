package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// leaderElection lets two candidates compete for one Lease: one leads and stops, then the other leads.
func leaderElection(ctx context.Context, config *rest.Config, seen *recorder) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	led := make(chan string, 2)
	resigned := make(chan string, 2)
	stand := func(ctx context.Context, name string) {
		leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
			Lock: &resourcelock.LeaseLock{
				LeaseMeta:  metav1.ObjectMeta{Namespace: "default", Name: "election"},
				Client:     client.CoordinationV1(),
				LockConfig: resourcelock.ResourceLockConfig{Identity: name},
			},
			ReleaseOnCancel: true,
			LeaseDuration:   30 * time.Second,
			RenewDeadline:   20 * time.Second,
			RetryPeriod:     200 * time.Millisecond,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) { led <- name },
				OnStoppedLeading: func() { resigned <- name },
			},
		})
	}
	first, resign := context.WithCancel(ctx)
	defer resign()
	second, end := context.WithCancel(ctx)
	defer end()
	go stand(first, "first")
	if err := expectName(ctx, led, "first"); err != nil {
		return err
	}
	go stand(second, "second")
	lease := func() (holder string, version string, err error) {
		found, err := client.CoordinationV1().Leases("default").Get(ctx, "election", metav1.GetOptions{})
		if err != nil || found.Spec.HolderIdentity == nil {
			return "", "", err
		}
		return *found.Spec.HolderIdentity, found.ResourceVersion, nil
	}
	holder, version, err := lease()
	if err != nil || holder != "first" {
		return fmt.Errorf("the Lease is held by %q: %v", holder, err)
	}
	if err := until(ctx, "a renewal", func() bool { _, now, _ := lease(); return now != version }); err != nil {
		return err
	}
	if len(led) > 0 {
		return fmt.Errorf("two lead at once")
	}
	resign()
	if err := expectName(ctx, resigned, "first"); err != nil {
		return err
	}
	if err := expectName(ctx, led, "second"); err != nil {
		return err
	}
	sent := seen.count(func(q request) bool { return q.method == "PUT" && isProtobuf(q) })
	return want(sent > 0, "no Lease was sent as protobuf")
}

func expectName(ctx context.Context, from <-chan string, wanted string) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case name := <-from:
		return want(name == wanted, "%q instead of %q", name, wanted)
	}
}
