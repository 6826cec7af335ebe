//! Creating and killing leaves the machine as it was: processes, mounts, network namespaces, interfaces, cgroups, files.
//!
//! A quick slice by default, 1,000 of each class with `BELLJAR_FULL=1`.
#![expect(clippy::print_stdout, reason = "whoever runs the long version wants to see that it moves")]

use belljar_testkit::{Census, Lab, block_on, run, scaled};
use belljar_types::IsolationClass;

/// What pools and lazy connections may hold more than at the first count.
const POOLED: &[(&str, usize)] = &[("open files of this process", 40)];

async fn create_and_kill(class: IsolationClass, count: u64) {
    let lab = Lab::get().await;
    // The first sandboxes fill pools and caches; what they keep is not a leak, what later ones keep is.
    for _ in 0..4 {
        lab.sandbox(class).await.destroy().await;
    }
    lab.host.settle().await;
    let before = Census::take(&lab.scope());
    println!("{class}: before {before}");
    for round in 0..count {
        let (one, two) = tokio::join!(lab.sandbox(class), lab.sandbox(class));
        if round % 4 == 0 {
            assert_eq!(run(&*one.guest, &["/bin/echo", "alive"]).await.text(), "alive");
        }
        tokio::join!(one.destroy(), two.destroy());
    }
    lab.host.settle().await;
    assert_eq!(Census::settle(&before, &lab.scope(), POOLED).await, Ok(()), "after {} {class} sandboxes", count * 2);
    println!("{class}: after {} sandboxes: {}", count * 2, Census::take(&lab.scope()));
}

/// One test, so that the classes do not count each other's sandboxes.
#[test]
fn creating_and_killing_leaves_the_machine_as_it_was() {
    block_on(async {
        create_and_kill(IsolationClass::Container, scaled(50, 500)).await;
        create_and_kill(IsolationClass::Gvisor, scaled(15, 500)).await;
    });
}
