//! Volumes in Daytona's words. There a volume is there for every sandbox that names it, so it is mounted `shared`.

use belljar_core::MountRequest;
use belljar_http::moment;
use belljar_types::{MountMode, Volume, VolumeMount, VolumeState};

use crate::dto::NewVolumeMount;
use crate::errors::ApiError;

pub(crate) fn mount_request(mount: NewVolumeMount) -> Result<MountRequest, ApiError> {
    if mount.subpath.is_some_and(|path| !path.is_empty()) {
        return Err(ApiError::unsupported("mounting a part of a volume (subpath)"));
    }
    Ok(MountRequest { volume: mount.volume_id, path: mount.mount_path.parse()?, mode: MountMode::Shared })
}

pub(crate) fn mount_dto(mount: &VolumeMount) -> serde_json::Value {
    serde_json::json!({ "volumeId": mount.volume.to_string(), "mountPath": mount.path.to_string() })
}

pub(crate) fn volume_dto(volume: &Volume) -> serde_json::Value {
    let made = moment(volume.created_at);
    let state = match volume.state {
        VolumeState::Making => "creating",
        VolumeState::Ready => "ready",
        VolumeState::Removing => "deleting",
    };
    serde_json::json!({
        "id": volume.id.to_string(), "name": volume.name.to_string(), "organizationId": volume.project.to_string(), "state": state,
        "createdAt": made, "updatedAt": made, "lastUsedAt": made, "errorReason": null,
    })
}
