// The workloads of structured concurrency in Go: bench WORKLOAD THREADS N
package main

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
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

// Eight pairs that play ping-pong.
func pairs8(n int) {
	var group sync.WaitGroup
	for pair := 0; pair < 8; pair++ {
		there, back := make(chan int), make(chan int)
		group.Add(2)
		go func() {
			defer group.Done()
			for value := range there {
				back <- value
			}
		}()
		go func() {
			defer group.Done()
			for i := 0; i < n/8; i++ {
				there <- i
				if <-back != i {
					panic("pairs8: a wrong answer")
				}
			}
			close(there)
		}()
	}
	group.Wait()
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

func compute(length time.Duration) {
	for end := time.Now().Add(length); time.Now().Before(end); {
	}
}

func putPercentiles(name string, samples []time.Duration) {
	sort.Slice(samples, func(i, j int) bool { return samples[i] < samples[j] })
	at := func(quantile float64) float64 {
		i := int(quantile * float64(len(samples)))
		if i >= len(samples) {
			i = len(samples) - 1
		}
		return float64(samples[i].Nanoseconds()) / 1000
	}
	fmt.Printf("%s_p50_us %.2f\n%s_p99_us %.2f\n%s_max_us %.2f\n", name, at(.5), name, at(.99), name, at(1))
}

// 200 goroutines take a mutex for a microsecond each time, and 1,000 others only take turns.
func convoy(n int) {
	var mutex sync.Mutex
	var waits []time.Duration
	var ended atomic.Bool
	var group sync.WaitGroup
	start := time.Now()
	for role := 0; role < 1200; role++ {
		group.Add(1)
		go func(role int) {
			for ; !ended.Load(); runtime.Gosched() {
				compute(20 * time.Microsecond)
				if role >= 200 {
					continue
				}
				start := time.Now()
				mutex.Lock()
				waits = append(waits, time.Since(start))
				compute(time.Microsecond)
				if len(waits) >= n {
					ended.Store(true)
				}
				mutex.Unlock()
			}
			group.Done()
		}(role)
	}
	group.Wait()
	fmt.Printf("ns_per_lock %.2f\n", float64(time.Since(start).Nanoseconds())/float64(n))
	putPercentiles("waited", waits)
}

// A kind of load, until over: waves of short goroutines, timers, or "16x100", 16 goroutines that compute for 100 us and
// yield.
func addLoad(busy *sync.WaitGroup, load string, over *atomic.Bool) {
	add := func(number int, once func()) {
		busy.Add(number)
		for i := 0; i < number; i++ {
			go func() {
				for !over.Load() {
					once()
				}
				busy.Done()
			}()
		}
	}
	switch load {
	case "spawns":
		add(1, func() { waitGroup1k(1000) })
	case "timers":
		add(2000, func() { time.Sleep(time.Millisecond) })
	default:
		number, us, _ := strings.Cut(load, "x")
		hogs, _ := strconv.Atoi(number)
		quantum, _ := strconv.Atoi(us)
		add(hogs, func() {
			compute(time.Duration(quantum) * time.Microsecond)
			runtime.Gosched()
		})
	}
}

// Calls once n times, or for 3 s, and collects the times.
func sample(times *[]time.Duration, n int, once func() time.Duration) {
	end := time.Now().Add(3 * time.Second)
	for i := 0; i < n && time.Now().Before(end); i++ {
		*times = append(*times, once())
	}
}

func serveEcho(listener net.Listener) {
	for {
		peer, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			for octet := make([]byte, 1); ; {
				if got, _ := peer.Read(octet); got != 1 {
					return
				}
				peer.Write(octet)
			}
		}()
	}
}

// How late a timer, an echo on each of 64 connections and a wake by a thread of its own are, each n times.
func mix(load string, n int) {
	var over atomic.Bool
	var busy, measured sync.WaitGroup
	addLoad(&busy, load, &over)
	var ticks, wakes []time.Duration
	var echoes [64][]time.Duration
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go serveEcho(listener)
	measured.Add(2 + len(echoes))
	go func() {
		sample(&ticks, n, func() time.Duration {
			start := time.Now()
			time.Sleep(time.Millisecond)
			return time.Since(start) - time.Millisecond
		})
		measured.Done()
	}()
	for i := range echoes {
		go func(times *[]time.Duration) {
			stream, err := net.Dial("tcp", listener.Addr().String())
			if err != nil {
				panic(err)
			}
			octet := make([]byte, 1)
			sample(times, n, func() time.Duration {
				time.Sleep(time.Millisecond)
				start := time.Now()
				stream.Write(octet)
				if got, _ := stream.Read(octet); got != 1 {
					panic("mix: no echo")
				}
				return time.Since(start)
			})
			measured.Done()
		}(&echoes[i])
	}
	sent := make(chan time.Time, 1)
	go func() { // in a system call it holds no processor of Go's, so it is as a thread outside
		runtime.LockOSThread()
		end := time.Now().Add(3 * time.Second)
		for i := 0; i < n && time.Now().Before(end); i++ {
			syscall.Nanosleep(&syscall.Timespec{Nsec: 1_000_000}, nil)
			sent <- time.Now()
		}
		close(sent)
	}()
	go func() {
		for start := range sent {
			wakes = append(wakes, time.Since(start))
		}
		measured.Done()
	}()
	measured.Wait()
	over.Store(true)
	busy.Wait()
	all := []time.Duration{}
	for _, times := range echoes {
		all = append(all, times...)
	}
	putPercentiles("tick", ticks)
	putPercentiles("echo", all)
	putPercentiles("wake", wakes)
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
	if strings.HasPrefix(os.Args[1], "mix") {
		mix(strings.TrimPrefix(os.Args[1], "mix"), n)
		return
	}
	switch os.Args[1] {
	case "convoy":
		convoy(n)
		return
	case "when_all10":
		whenAll10(n)
		metric = "ns_per_op"
	case "wait_group1k":
		waitGroup1k(n)
		metric = "ns_per_fiber"
	case "pairs8":
		pairs8(n)
		metric = "ns_per_roundtrip"
	case "lock":
		lock(n)
		metric = "ns_per_lock"
	default:
		os.Exit(3)
	}
	fmt.Printf("%s %.2f\n", metric, float64(time.Since(start).Nanoseconds())/float64(n))
}
