// The workloads of structured concurrency in Go: bench WORKLOAD THREADS N
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"
)

// Ten results, each from a goroutine of its own, waited for together.
func whenAll10(n int) {
	sum := 0
	for i := 0; i < n; i++ {
		var results [10]int
		var group sync.WaitGroup
		group.Add(len(results))
		for j := range results {
			go func(result *int) {
				*result = 1
				group.Done()
			}(&results[j])
		}
		group.Wait()
		for _, result := range results {
			sum += result
		}
	}
	if sum != 10*n {
		panic("when_all10: a wrong sum")
	}
}

// A thousand goroutines, and a group that waits for them.
func waitGroup1k(n int) {
	for i := 0; i < n/1000; i++ {
		var group sync.WaitGroup
		for j := 0; j < 1000; j++ {
			group.Add(1)
			go group.Done()
		}
		group.Wait()
	}
}

func lock(n int) {
	var mutex sync.Mutex
	counter := 0
	for i := 0; i < n; i++ {
		mutex.Lock()
		counter++
		mutex.Unlock()
	}
	if counter != n {
		panic("lock: increments lost")
	}
}

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: bench WORKLOAD THREADS N")
		os.Exit(2)
	}
	threads, _ := strconv.Atoi(os.Args[2])
	n, _ := strconv.Atoi(os.Args[3])
	runtime.GOMAXPROCS(threads)
	start := time.Now()
	metric := ""
	switch os.Args[1] {
	case "when_all10":
		whenAll10(n)
		metric = "ns_per_op"
	case "wait_group1k":
		waitGroup1k(n)
		metric = "ns_per_fiber"
	case "lock":
		lock(n)
		metric = "ns_per_lock"
	default:
		os.Exit(3)
	}
	fmt.Printf("%s %.2f\n", metric, float64(time.Since(start).Nanoseconds())/float64(n))
}
