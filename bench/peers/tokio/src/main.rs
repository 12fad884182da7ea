// The workloads of structured concurrency on tokio: bench WORKLOAD THREADS N
use std::time::Instant;
use tokio::sync::Mutex;
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

async fn lock(n: usize) {
    let mutex = Mutex::new(0);
    for _ in 0..n {
        *mutex.lock().await += 1;
    }
    assert_eq!(*mutex.lock().await, n);
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    if args.len() != 4 {
        eprintln!("usage: bench WORKLOAD THREADS N");
        std::process::exit(2);
    }
    let threads = args[2].parse().unwrap();
    let n: usize = args[3].parse().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(threads).build().unwrap();
    let workload = args[1].clone();
    let metric = match workload.as_str() {
        "when_all10" => "ns_per_op",
        "wait_group1k" => "ns_per_fiber",
        "lock" => "ns_per_lock",
        _ => std::process::exit(3),
    };
    let start = Instant::now();
    runtime.block_on(async move {
        tokio::spawn(async move {
            match workload.as_str() {
                "when_all10" => when_all10(n).await,
                "wait_group1k" => wait_group1k(n).await,
                _ => lock(n).await,
            }
        })
        .await
        .unwrap()
    });
    println!("{} {:.2}", metric, start.elapsed().as_nanos() as f64 / n as f64);
}
