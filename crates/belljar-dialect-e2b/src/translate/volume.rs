//! Volumes and what is in them, in E2B's words. E2B's volumes are there for every sandbox that names them, so they are mounted `shared`.

use belljar_core::MountRequest;
use belljar_types::{FileKind, MountMode, Volume, VolumeEntry, VolumeMount};

use crate::dto::{EntryStat, VolumeDto, VolumeMountDto};
use crate::errors::ApiError;

pub(crate) fn volume_dto(volume: &Volume) -> VolumeDto {
    VolumeDto { volume_id: volume.id.to_string(), name: volume.name.to_string() }
}

pub(crate) fn mount_request(mount: VolumeMountDto) -> Result<MountRequest, ApiError> {
    let path = mount.path.parse()?;
    Ok(MountRequest { volume: mount.name, path, mode: MountMode::Shared })
}

pub(crate) fn mount_dto(mount: &VolumeMount) -> VolumeMountDto {
    VolumeMountDto { name: mount.name.to_string(), path: mount.path.to_string() }
}

/// Names that are not UTF-8 have no place in E2B's answers; they are shown as near as can be.
pub(crate) fn entry_stat(entry: &VolumeEntry) -> EntryStat {
    let path = format!("/{}", String::from_utf8_lossy(&entry.path));
    let at = |nanos: i64| jiff::Timestamp::from_nanosecond(i128::from(nanos)).unwrap_or(jiff::Timestamp::UNIX_EPOCH).to_string();
    EntryStat {
        name: path.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("/").to_owned(),
        kind: match entry.kind {
            FileKind::File => "file",
            FileKind::Directory => "directory",
            FileKind::Symlink => "symlink",
            FileKind::Other => "unknown",
        },
        path,
        size: entry.size,
        mode: entry.mode,
        uid: entry.uid,
        gid: entry.gid,
        atime: at(entry.accessed_nanos),
        mtime: at(entry.modified_nanos),
        ctime: at(entry.changed_nanos),
        target: entry.symlink_target.as_ref().map(|target| String::from_utf8_lossy(target).into_owned()),
    }
}
