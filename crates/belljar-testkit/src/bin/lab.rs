//! Drives the laboratory from outside, for suites that must kill what they test: a maker that is shot, and whoever comes after it.
//!
//! `lab prepare` makes the template; `lab scope` does too, clears away what is left of earlier tests, and says where it all is;
//! `lab small BYTES` the same for a small pool beside it, which `lab close-small` removes; `lab make CLASS` creates and destroys until it is killed; `lab time CLASS COUNT` says how many microseconds each of so many creates took;
//! `lab recover` destroys whatever is there and prints a census; `lab close` leaves the machine as it was found.
#![allow(clippy::print_stdout, reason = "the suites read what it prints")]

use std::io::Write;

use belljar_testkit::{Census, Lab, SmallLab, block_on, run};
use belljar_types::IsolationClass;

/// The pool is there already, so its size is of no account.
const SMALLEST_POOL: u64 = 512 << 20;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    block_on(async {
        match arguments[..] {
            ["prepare"] => println!("template {} is ready", Lab::open().await?.template.name),
            ["scope"] => {
                let lab = Lab::open().await?;
                lab.clear().await?;
                let scope = lab.scope();
                println!("{}", serde_json::json!({ "instance": scope.instance, "data_dir": scope.data_dir }));
            }
            ["small", bytes] => {
                let small = SmallLab::open(&Lab::open().await?, bytes.parse()?).await?;
                let scope = small.lab.scope();
                println!("{}", serde_json::json!({ "instance": scope.instance, "data_dir": scope.data_dir }));
            }
            ["close-small"] => SmallLab::open(&Lab::open().await?, SMALLEST_POOL).await?.close().await,
            ["make", "container"] => make(IsolationClass::Container).await?,
            ["make", "gvisor"] => make(IsolationClass::Gvisor).await?,
            ["time", "container", count] => time(IsolationClass::Container, count.parse()?).await?,
            ["time", "gvisor", count] => time(IsolationClass::Gvisor, count.parse()?).await?,
            ["recover"] => recover().await?,
            ["close"] => {
                let lab = Lab::open().await?;
                lab.clear().await?;
                lab.host.close().await?;
            }
            _ => return Err("usage: lab prepare | scope | small BYTES | close-small | make container|gvisor | time container|gvisor COUNT | recover | close".into()),
        }
        Ok(())
    })
}

/// Two makers at once, so that the shot finds one in the middle of a create and the other in the middle of something else.
async fn make(class: IsolationClass) -> Result<(), Box<dyn std::error::Error>> {
    let lab = Lab::open().await?;
    announce("opened");
    let one = async {
        loop {
            let sandbox = lab.sandbox(class).await;
            announce(sandbox.execution.sandbox.as_str());
            run(&*sandbox.guest, &["/bin/true"]).await;
            sandbox.destroy().await;
        }
    };
    let other = async {
        loop {
            let sandbox = lab.sandbox(class).await;
            sandbox.destroy().await;
        }
    };
    tokio::join!(one, other).0
}

async fn time(class: IsolationClass, count: u32) -> Result<(), Box<dyn std::error::Error>> {
    let lab = Lab::open().await?;
    for _ in 0..count {
        let begun = std::time::Instant::now();
        let sandbox = lab.sandbox(class).await;
        println!("{}", begun.elapsed().as_micros());
        sandbox.destroy().await;
    }
    Ok(())
}

async fn recover() -> Result<(), Box<dyn std::error::Error>> {
    let lab = Lab::open().await?;
    lab.clear().await?;
    println!("{}", serde_json::to_string(&Census::take(&lab.scope()))?);
    Ok(())
}

fn announce(text: &str) {
    println!("{text}");
    // The reader may be gone already; then the shot is on its way.
    let _ = std::io::stdout().flush();
}
