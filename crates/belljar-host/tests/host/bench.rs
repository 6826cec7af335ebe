//! What reserving and releasing cost here; printed, never asserted, since the machine is shared.

use std::time::{Duration, Instant};

use belljar_types::IsolationClass;

use crate::scene::{Scene, spec};

#[tokio::test(flavor = "multi_thread")]
async fn reserve_and_release_are_timed() {
    const ROUNDS: usize = 60;
    let scene = Scene::with(|config| config.closed_slots = 8).await;
    let (mut reserve, mut release) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        if round % 8 == 0 {
            scene.host.settle().await;
        }
        let spec = spec();
        let start = Instant::now();
        let reserved = scene.host.reserve(IsolationClass::Container, &spec).await.unwrap();
        reserve.push(start.elapsed());
        drop(reserved);
        let start = Instant::now();
        scene.host.release(&spec.id).await.unwrap();
        release.push(start.elapsed());
    }
    println!("reserve {}, release {}", summary(&mut reserve), summary(&mut release));
    scene.close().await;
}

fn summary(times: &mut [Duration]) -> String {
    times.sort();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100];
    format!("min {:?} p50 {:?} p95 {:?}", at(0), at(50), at(95))
}
