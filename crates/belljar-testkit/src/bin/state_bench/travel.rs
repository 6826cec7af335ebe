//! A snapshot with memory, to a service that speaks S3 and back, until a sandbox goes on from it.

use std::sync::Arc;
use std::time::Instant;

use belljar_blobs::{S3Bucket, S3Credentials, open_s3};
use belljar_image::LayerStore;
use belljar_parcel::HostParcels;
use belljar_ports::{Blobs, Contents, Parcels, Sender, SnapshotKind, Wanted};
use belljar_testkit::s3::{self, S3Server};
use belljar_testkit::{Lab, Sandbox};
use belljar_types::{IsolationClass, OnTimeout, Secret, Snapshot, SnapshotId, SnapshotPurpose, SnapshotState, Timestamp};

use crate::figures::Figures;
use crate::{Failure, memory};

pub(crate) async fn through_s3(lab: &Lab, megabytes: usize, figures: &mut Figures) -> Result<(), Failure> {
    let home = tempfile::tempdir_in(&lab.data_dir)?;
    let server = S3Server::start(&home.path().join("bucket"), 1000).await?;
    let credentials = S3Credentials { access_key_id: s3::ACCESS_KEY.to_owned(), secret_access_key: Secret::new(s3::SECRET_KEY.to_owned()) };
    let blobs = open_s3(S3Bucket {
        endpoint: Some(server.endpoint()),
        region: s3::REGION.to_owned(),
        bucket: s3::BUCKET.to_owned(),
        credentials,
        uploads: home.path().join("uploads"),
    })
    .await?;
    let parcels = HostParcels::new(Arc::clone(&lab.host), LayerStore::open(lab.host.pool_directory())?);
    let Sandbox { runtime, execution, guest } = memory::filled(lab, megabytes).await?;
    drop(guest);
    let id = SnapshotId::random();
    runtime.snapshot(&execution.sandbox, &id, SnapshotKind::Memory).await?;
    runtime.destroy(&execution.sandbox).await?;
    let snapshot = described(lab, &id, &execution.sandbox, megabytes);
    let key = format!("snapshots/bench/{id}").parse()?;
    let start = Instant::now();
    let put = blobs.put(&key, parcels.pack(&snapshot, "bench", Contents::WithoutLayers).await?, u64::MAX).await?;
    figures.add(&format!("push to S3, {megabytes} MB dirty"), start);
    figures.set_bytes(&format!("snapshot in S3, {megabytes} MB dirty"), put.bytes);
    runtime.remove_snapshot(&id).await?;
    let (again, spec) = (SnapshotId::random(), memory::spec(lab, megabytes));
    let start = Instant::now();
    let (_, content) = blobs.get(&key, Wanted::Whole { sha256: put.sha256 }).await?.ok_or("it is not in the bucket")?;
    parcels.open(content).await?.unpack(&again, "bench", Sender::Server).await?;
    runtime.fork(&again, &spec).await?;
    runtime.guest(&spec.id).await?.hello().await?;
    figures.add(&format!("restore from S3 until it answers, {megabytes} MB dirty"), start);
    runtime.destroy(&spec.id).await?;
    runtime.remove_snapshot(&again).await?;
    Ok(())
}

/// What the service would have written down about it.
fn described(lab: &Lab, id: &SnapshotId, source: &belljar_types::SandboxId, megabytes: usize) -> Snapshot {
    Snapshot {
        id: id.clone(),
        project: "bench".parse().unwrap_or_else(|_| unreachable!("it is a name")),
        name: None,
        state: SnapshotState::Whole,
        purpose: SnapshotPurpose::Kept,
        kind: SnapshotKind::Memory,
        class: IsolationClass::Gvisor,
        source: source.clone(),
        parent: None,
        root: source.clone(),
        template: lab.template.name.clone(),
        spec: memory::spec(lab, megabytes),
        metadata: std::collections::BTreeMap::new(),
        idle_timeout: None,
        on_timeout: OnTimeout::default(),
        auto_resume: false,
        bytes: 0,
        stood_still: std::time::Duration::ZERO,
        created_at: Timestamp::now(),
        expires_at: None,
    }
}
