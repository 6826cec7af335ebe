//! Volumes: requests, views, and entries of their content.

use belljar_core::{CopyVolume, CreateVolume, MountRequest, VolumePage, VolumeStatus};
use belljar_types::{EntryChange, FileKind, Invalid, Volume, VolumeEntry, VolumeMount, VolumeName, VolumePath};

use super::{bounded, mode, moment, renamed, text_or_base64};
use crate::dto::{
    CloneVolumeRequest, FileView, HolderView, VolumeMountBody, VolumePageView, VolumeQuery, VolumeRequest, VolumeStatusView, VolumeView,
};

fn name(text: &str) -> Result<VolumeName, Invalid> {
    text.parse().map_err(|error| renamed("name", error))
}

pub(crate) fn create_volume(request: &VolumeRequest) -> Result<CreateVolume, Invalid> {
    Ok(CreateVolume { name: name(&request.name)?, size_bytes: request.size_bytes, bucket: request.bucket.clone() })
}

pub(crate) fn copy_volume(request: &CloneVolumeRequest) -> Result<CopyVolume, Invalid> {
    Ok(CopyVolume { name: name(&request.name)?, size_bytes: request.size_bytes, read_only: request.read_only })
}

pub(crate) fn mount(request: VolumeMountBody) -> Result<MountRequest, Invalid> {
    let mode = request.mode.parse().map_err(|error| renamed("volumes.mode", error))?;
    Ok(MountRequest { volume: request.volume, path: request.path.parse()?, mode })
}

pub(crate) fn mount_view(mount: &VolumeMount) -> VolumeMountBody {
    VolumeMountBody { volume: mount.name.to_string(), path: mount.path.to_string(), mode: mount.mode.to_string() }
}

pub(crate) fn volume_view(volume: &Volume) -> VolumeView {
    VolumeView {
        id: volume.id.to_string(),
        name: volume.name.to_string(),
        project: volume.project.to_string(),
        size_bytes: volume.size_bytes,
        read_only: volume.read_only,
        origin: volume.origin.as_ref().map(ToString::to_string),
        bucket: volume.bucket.clone(),
        created_at: moment(volume.created_at),
    }
}

pub(crate) fn volume_status(status: &VolumeStatus) -> VolumeStatusView {
    VolumeStatusView {
        volume: volume_view(&status.volume),
        used_bytes: status.used_bytes,
        mounted_by: status
            .holders
            .iter()
            .map(|holder| HolderView { sandbox: holder.sandbox.to_string(), mode: holder.mode.as_str() })
            .collect(),
    }
}

/// After which name, and how many.
pub(crate) fn volume_query(query: &VolumeQuery) -> Result<(Option<VolumeName>, u32), Invalid> {
    let after = query.cursor.as_deref().map(str::parse).transpose();
    let after = after.map_err(|_: Invalid| Invalid::new("cursor", "what `next_cursor` said", query.cursor.as_deref().unwrap_or("")))?;
    Ok((after, bounded("limit", query.limit, 100, 1, 1000)?))
}

pub(crate) fn volume_page(page: &VolumePage) -> VolumePageView {
    VolumePageView { volumes: page.volumes.iter().map(volume_view).collect(), next_cursor: page.next.as_ref().map(ToString::to_string) }
}

pub(crate) fn volume_path(field: &str, text: &str) -> Result<VolumePath, Invalid> {
    text.parse().map_err(|error| renamed(field, error))
}

pub(crate) fn entry_change(octal: Option<&str>, uid: Option<u32>, gid: Option<u32>) -> Result<EntryChange, Invalid> {
    Ok(EntryChange { uid, gid, mode: octal.map(mode).transpose()? })
}

pub(crate) fn entry_view(entry: &VolumeEntry) -> FileView {
    let mut full = vec![b'/'];
    full.extend_from_slice(&entry.path);
    let (path, path_base64) = text_or_base64(&full);
    let target = entry.symlink_target.as_deref().map(text_or_base64);
    let (symlink_target, symlink_target_base64) = target.map_or((None, None), |(text, base64)| (Some(text), base64));
    let modified = jiff::Timestamp::from_nanosecond(i128::from(entry.modified_nanos)).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    FileView {
        path,
        path_base64,
        kind: match entry.kind {
            FileKind::File => "file",
            FileKind::Directory => "directory",
            FileKind::Symlink => "symlink",
            FileKind::Other => "other",
        },
        size: entry.size,
        mode: format!("{:04o}", entry.mode),
        uid: entry.uid,
        gid: entry.gid,
        owner: None,
        group: None,
        modified_at: format!("{modified:.3}"),
        symlink_target,
        symlink_target_base64,
    }
}
