//! Buckets as volumes: the process that serves one, and who starts it.
//!
//! A process for each, so that a server that dies or is replaced takes no sandbox's files away; it ends when nobody has the bucket mounted any more.
//! It is told the keys on its standard input: no list of processes, environment or file shows them.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;

use belljar_blobs::{S3Bucket, S3Credentials, s3_client};
use belljar_bucket::{Appearance, Bucket};
use belljar_host::Brokers;
use belljar_types::{ProjectId, Secret};

use crate::Failure;
use crate::config::{BucketConfig, BucketsConfig, LogConfig};
use crate::telemetry::Telemetry;

/// The default user of templates: whose a bucket's files seem to be.
const OWNER: u32 = 1000;
const LONGEST_ORDER: u64 = 64 << 10;
const READY: &str = "ready";

/// Serve a bucket as a directory; started by the server
#[derive(clap::Args)]
#[command(hide = true, after_help = "Example: none; `belljar serve` starts it for volumes that are buckets.")]
pub(crate) struct Arguments {
    /// On which directory; so that a list of processes tells which is which
    at: PathBuf,
}

/// What to serve and where.
#[derive(serde::Serialize, serde::Deserialize)]
struct Order {
    endpoint: Option<String>,
    region: String,
    bucket: String,
    access_key_id: String,
    secret_access_key: String,
    prefix: String,
    read_only: bool,
    drafts: PathBuf,
    drafts_bytes: u64,
}

/// Serves until it is unmounted.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let mut text = String::new();
    io::stdin().lock().take(LONGEST_ORDER).read_to_string(&mut text)?;
    let order: Order = serde_json::from_str(&text).map_err(|_| "this is started by `belljar serve`, which says what to serve")?;
    let _telemetry = Telemetry::start(&LogConfig::default())?;
    let credentials = S3Credentials { access_key_id: order.access_key_id, secret_access_key: Secret::new(order.secret_access_key) };
    let place = S3Bucket { endpoint: order.endpoint, region: order.region, bucket: order.bucket, credentials, uploads: PathBuf::new() };
    let bucket = Bucket {
        store: Arc::new(s3_client(&place)?),
        prefix: order.prefix,
        drafts: order.drafts,
        drafts_bytes: order.drafts_bytes,
        appearance: Appearance { user: OWNER, group: OWNER, read_only: order.read_only },
    };
    belljar_bucket::serve(bucket, &arguments.at, || {
        // Nobody may be there to hear it any more; the bucket is served all the same.
        let _ = writeln!(io::stdout(), "{READY}");
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Starts such processes, for the buckets of the configuration.
pub(crate) struct Starter {
    buckets: BucketsConfig,
    drafts: PathBuf,
}

impl Starter {
    pub(crate) fn new(buckets: BucketsConfig, data_dir: &Path) -> Self {
        Self { buckets, drafts: BucketConfig::drafts(data_dir) }
    }

    fn order(&self, name: &str) -> io::Result<Order> {
        let config =
            self.buckets.get(name).ok_or_else(|| io::Error::other(format!("there is no [buckets.{name}] in the configuration")))?;
        let S3Bucket { endpoint, region, bucket, credentials, .. } = config.s3(name).map_err(io::Error::other)?;
        Ok(Order {
            endpoint,
            region,
            bucket,
            access_key_id: credentials.access_key_id,
            secret_access_key: credentials.secret_access_key.reveal().clone(),
            prefix: config.prefix.clone(),
            read_only: config.read_only,
            drafts: self.drafts.clone(),
            drafts_bytes: config.drafts_bytes(),
        })
    }
}

impl Brokers for Starter {
    fn knows(&self, bucket: &str, project: &ProjectId) -> bool {
        self.buckets.get(bucket).is_some_and(|config| config.projects.contains(project))
    }

    fn serve(&self, bucket: &str, at: &Path) -> io::Result<()> {
        let order = serde_json::to_vec(&self.order(bucket)?)?;
        std::fs::create_dir_all(&self.drafts)?;
        let mut child = Command::new(std::env::current_exe()?)
            .arg("serve-bucket")
            .arg(at)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // What a terminal sends to the server is not for it.
            .process_group(0)
            .spawn()?;
        let served = tell(&mut child, &order);
        // Whenever it ends, it is buried.
        std::thread::Builder::new().name("bucket broker".to_owned()).spawn(move || child.wait())?;
        served
    }
}

/// Gives it its order, and waits until it is ready.
fn tell(child: &mut Child, order: &[u8]) -> io::Result<()> {
    // Closed when it is written: the other side reads to the end.
    child.stdin.take().ok_or(io::ErrorKind::BrokenPipe)?.write_all(order)?;
    let mut answer = String::new();
    BufReader::new(child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?).read_line(&mut answer)?;
    if answer.trim_end() == READY { Ok(()) } else { Err(io::Error::other("it ended before it was ready; its words are in the log")) }
}
