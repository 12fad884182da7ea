// The workloads of structured concurrency on tokio: bench WORKLOAD THREADS N
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, Mutex};
use tokio::task::JoinSet;

// Ten results, each from a task of its own, waited for together.
async fn when_all10(n: usize) {
    let mut sum = 0;
    for _ in 0..n {
        let handles: [_; 10] = std::array::from_fn(|_| tokio::spawn(async { 1 }));
        for handle in handles {
            sum += handle.await.unwrap();
        }
    }
    assert_eq!(sum, 10 * n);
}

// A thousand tasks, and a set that waits for them.
async fn wait_group1k(n: usize) {
    for _ in 0..n / 1000 {
        let mut group = JoinSet::new();
        for _ in 0..1000 {
            group.spawn(async {});
        }
        while group.join_next().await.is_some() {}
    }
}

// Eight pairs that play ping-pong. tokio has no channel without a buffer.
async fn pairs8(n: usize) {
    let mut group = JoinSet::new();
    for _ in 0..8 {
        let (there, mut come) = mpsc::channel(1);
        let (back, mut answers) = mpsc::channel(1);
        group.spawn(async move {
            while let Some(value) = come.recv().await {
                back.send(value).await.unwrap();
            }
        });
        group.spawn(async move {
            for i in 0..n / 8 {
                there.send(i).await.unwrap();
                assert_eq!(answers.recv().await, Some(i));
            }
        });
    }
    while let Some(done) = group.join_next().await {
        done.unwrap();
    }
}

async fn lock(n: usize) {
    let mutex = Mutex::new(0);
    for _ in 0..n {
        *mutex.lock().await += 1;
    }
    assert_eq!(*mutex.lock().await, n);
}

fn compute(time: Duration) {
    let end = Instant::now() + time;
    while Instant::now() < end {}
}

fn put_percentiles(name: &str, samples: &mut Vec<Duration>) {
    samples.sort();
    let at = |quantile: f64| {
        let i = (quantile * samples.len() as f64) as usize;
        samples[i.min(samples.len() - 1)].as_nanos() as f64 / 1000.0
    };
    for (what, quantile) in [("p50", 0.5), ("p99", 0.99), ("max", 1.0)] {
        println!("{}_{}_us {:.2}", name, what, at(quantile));
    }
}

// 200 tasks take a mutex for a microsecond each time, and 1,000 others only take turns.
async fn convoy(n: usize) {
    let waits = Arc::new(Mutex::new(Vec::new()));
    let ended = Arc::new(AtomicBool::new(false));
    let mut group = JoinSet::new();
    let start = Instant::now();
    for role in 0..1200 {
        let (waits, ended) = (waits.clone(), ended.clone());
        group.spawn(async move {
            while !ended.load(Ordering::Relaxed) {
                compute(Duration::from_micros(20));
                if role < 200 {
                    let start = Instant::now();
                    let mut held = waits.lock().await;
                    held.push(start.elapsed());
                    compute(Duration::from_micros(1));
                    if held.len() >= n {
                        ended.store(true, Ordering::Relaxed);
                    }
                }
                tokio::task::yield_now().await;
            }
        });
    }
    while group.join_next().await.is_some() {}
    println!("ns_per_lock {:.2}", start.elapsed().as_nanos() as f64 / n as f64);
    put_percentiles("waited", &mut *waits.lock().await);
}

// A kind of load, until `over`: waves of short tasks, timers, or "16x100", 16 tasks that compute for 100 us and yield.
fn add_load(busy: &mut JoinSet<()>, load: &str, over: &Arc<AtomicBool>) {
    let ended = |over: &Arc<AtomicBool>| {
        let over = over.clone();
        move || over.load(Ordering::Relaxed)
    };
    if load == "spawns" {
        let ended = ended(over);
        busy.spawn(async move {
            while !ended() {
                wait_group1k(1000).await;
            }
        });
    } else if load == "timers" {
        for _ in 0..2000 {
            let ended = ended(over);
            busy.spawn(async move {
                while !ended() {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            });
        }
    } else {
        let (hogs, us) = load.split_once('x').unwrap();
        let quantum = Duration::from_micros(us.parse().unwrap());
        for _ in 0..hogs.parse().unwrap() {
            let ended = ended(over);
            busy.spawn(async move {
                while !ended() {
                    compute(quantum);
                    tokio::task::yield_now().await;
                }
            });
        }
    }
}

const MOST_TIME: Duration = Duration::from_secs(3);

async fn tick(n: usize) -> Vec<Duration> {
    let (end, mut ticks) = (Instant::now() + MOST_TIME, Vec::new());
    while ticks.len() < n && Instant::now() < end {
        let start = Instant::now();
        tokio::time::sleep(Duration::from_millis(1)).await;
        ticks.push(start.elapsed().saturating_sub(Duration::from_millis(1)));
    }
    ticks
}

async fn echo(address: SocketAddr, n: usize) -> Vec<Duration> {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let (end, mut octet, mut echoes) = (Instant::now() + MOST_TIME, [0; 1], Vec::new());
    while echoes.len() < n && Instant::now() < end {
        tokio::time::sleep(Duration::from_millis(1)).await;
        let start = Instant::now();
        stream.write_all(&octet).await.unwrap();
        stream.read_exact(&mut octet).await.unwrap();
        echoes.push(start.elapsed());
    }
    echoes
}

async fn serve_echo(listener: TcpListener) {
    loop {
        let (mut peer, _) = listener.accept().await.unwrap();
        tokio::spawn(async move {
            let mut octet = [0; 1];
            while peer.read_exact(&mut octet).await.is_ok() {
                peer.write_all(&octet).await.unwrap();
            }
        });
    }
}

// How late a timer, an echo on each of 64 connections and a wake from outside are, each n times.
async fn mix(load: String, n: usize) {
    let over = Arc::new(AtomicBool::new(false));
    let mut busy = JoinSet::new();
    add_load(&mut busy, &load, &over);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(serve_echo(listener));
    let ticker = tokio::spawn(tick(n));
    let mut clients = JoinSet::new();
    for _ in 0..64 {
        clients.spawn(echo(address, n));
    }
    let (sender, mut sent) = mpsc::channel(1);
    let outside = std::thread::spawn(move || {
        let end = Instant::now() + MOST_TIME;
        for _ in 0..n {
            std::thread::sleep(Duration::from_millis(1));
            if Instant::now() > end {
                break;
            }
            sender.blocking_send(Instant::now()).unwrap();
        }
    });
    let receiver = tokio::spawn(async move {
        let mut wakes = Vec::new();
        while let Some(time) = sent.recv().await {
            wakes.push(Instant::now() - time);
        }
        wakes
    });
    let (mut ticks, mut echoes) = (ticker.await.unwrap(), Vec::new());
    while let Some(times) = clients.join_next().await {
        echoes.append(&mut times.unwrap());
    }
    let mut wakes = receiver.await.unwrap();
    outside.join().unwrap();
    over.store(true, Ordering::Relaxed);
    while busy.join_next().await.is_some() {}
    put_percentiles("tick", &mut ticks);
    put_percentiles("echo", &mut echoes);
    put_percentiles("wake", &mut wakes);
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    if args.len() != 4 {
        eprintln!("usage: bench WORKLOAD THREADS N");
        std::process::exit(2);
    }
    let threads = args[2].parse().unwrap();
    let n: usize = args[3].parse().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build().unwrap();
    let workload = args[1].clone();
    let metric = match workload.as_str() {
        "when_all10" => "ns_per_op",
        "wait_group1k" => "ns_per_fiber",
        "pairs8" => "ns_per_roundtrip",
        "lock" => "ns_per_lock",
        "convoy" => {
            runtime.block_on(async move { tokio::spawn(convoy(n)).await.unwrap() });
            return;
        }
        _ => match workload.strip_prefix("mix") {
            Some(load) => {
                let load = load.to_string();
                runtime.block_on(async move { tokio::spawn(mix(load, n)).await.unwrap() });
                return;
            }
            None => std::process::exit(3),
        },
    };
    let start = Instant::now();
    runtime.block_on(async move {
        tokio::spawn(async move {
            match workload.as_str() {
                "when_all10" => when_all10(n).await,
                "wait_group1k" => wait_group1k(n).await,
                "pairs8" => pairs8(n).await,
                _ => lock(n).await,
            }
        })
        .await
        .unwrap()
    });
    println!("{} {:.2}", metric, start.elapsed().as_nanos() as f64 / n as f64);
}
