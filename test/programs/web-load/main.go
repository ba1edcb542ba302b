// Answers HTTP on port 8080 with the name of its pod. `/?cpu=10ms` first works for so much CPU time, however long that takes on
// a busy machine: so many requests per second use so much CPU. After SIGTERM it answers for two seconds more.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

func main() {
	host, err := os.Hostname()
	must(err)
	server := &http.Server{Addr: ":8080", Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if text := r.URL.Query().Get("cpu"); text != "" {
			wanted, err := time.ParseDuration(text)
			if err != nil || wanted > time.Second {
				http.Error(w, "cpu has to be a duration of at most 1s", http.StatusBadRequest)
				return
			}
			work(wanted)
		}
		fmt.Fprint(w, host)
	})}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		if err := server.ListenAndServe(); err != http.ErrServerClosed {
			log.Fatal(err)
		}
	}()
	<-ended
	time.Sleep(2 * time.Second)
	must(server.Shutdown(context.Background()))
}

// work returns when its thread has used this much CPU time.
func work(wanted time.Duration) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for began := used(); used()-began < wanted; {
		for i := 0; i < 10_000; i++ {
			sink += uint64(i) * sink
		}
	}
}

// sink keeps the compiler from leaving the work out. Threads may overwrite what others wrote.
var sink uint64 = 1

func used() time.Duration {
	var usage syscall.Rusage
	must(syscall.Getrusage(syscall.RUSAGE_THREAD, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
