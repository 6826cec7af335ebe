//! Verbs about single files.

use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;

use belljar_guest_protocol::Failure;
use belljar_guest_protocol::wire::{FileBody, GetXattr, Made, PathOnly, Rename, SetMode, SetOwner, SetXattr, XattrValue};
use belljar_linux::attributes;
use belljar_types::Invalid;

use crate::call::{Call, CallError, user_name};
use crate::files::{self, act, as_os, guest_path, refused};

pub(super) async fn stat(call: &mut Call<'_>) -> Result<(), CallError> {
    let body: PathOnly = call.body()?;
    let path = guest_path(&body.path)?;
    let agent = call.agent;
    let info = call.wait(act(agent, user_name(body.user.as_ref())?, move |actor| actor.describer().at(&actor.path(&path)))).await??;
    call.respond(&FileBody::from(&info)).await
}

pub(super) async fn make_directory(call: &mut Call<'_>) -> Result<(), CallError> {
    let body: PathOnly = call.body()?;
    let path = guest_path(&body.path)?;
    let agent = call.agent;
    let work = act(agent, user_name(body.user.as_ref())?, move |actor| files::make_directories(Path::new(as_os(&actor.path(&path)))));
    let made = call.wait(work).await??;
    call.respond(&Made { made }).await
}

pub(super) async fn rename(call: &mut Call<'_>) -> Result<(), CallError> {
    let body: Rename = call.body()?;
    let (from, to) = (guest_path(&body.from)?, guest_path(&body.to)?);
    let agent = call.agent;
    let work = act(agent, user_name(body.user.as_ref())?, move |actor| {
        let (from, to) = (actor.path(&from), actor.path(&to));
        std::fs::rename(as_os(&from), as_os(&to)).map_err(|error| {
            let mut failure = refused(&from, &error);
            failure.message = format!("{} (to {})", failure.message, belljar_types::escape_untrusted(&to));
            failure
        })?;
        actor.describer().at(&to)
    });
    let info = call.wait(work).await??;
    call.respond(&FileBody::from(&info)).await
}

pub(super) async fn remove(call: &mut Call<'_>) -> Result<(), CallError> {
    let body: PathOnly = call.body()?;
    let path = guest_path(&body.path)?;
    let agent = call.agent;
    call.wait(act(agent, user_name(body.user.as_ref())?, move |actor| files::remove(&actor.path(&path)))).await??;
    call.respond(&()).await
}

pub(super) async fn set_mode(call: &mut Call<'_>) -> Result<(), CallError> {
    let body: SetMode = call.body()?;
    let path = guest_path(&body.path)?;
    if body.mode & !0o7777 != 0 {
        return Err(Invalid::new("mode", "permission bits, 0 to 07777", format!("{:o}", body.mode)).into());
    }
    let agent = call.agent;
    let work = act(agent, user_name(body.user.as_ref())?, move |actor| {
        let path = actor.path(&path);
        std::fs::set_permissions(as_os(&path), PermissionsExt::from_mode(body.mode)).map_err(|error| refused(&path, &error))
    });
    call.wait(work).await??;
    call.respond(&()).await
}

pub(super) async fn set_owner(call: &mut Call<'_>) -> Result<(), CallError> {
    let body: SetOwner = call.body()?;
    let path = guest_path(&body.path)?;
    let agent = call.agent;
    let work = act(agent, user_name(body.user.as_ref())?, move |actor| {
        let path = actor.path(&path);
        chown(as_os(&path), body.uid, body.gid).map_err(|error| refused(&path, &error))
    });
    call.wait(work).await??;
    call.respond(&()).await
}

pub(super) async fn get_xattr(call: &mut Call<'_>) -> Result<(), CallError> {
    let body: GetXattr = call.body()?;
    let path = guest_path(&body.path)?;
    let name = xattr_name(body.name)?;
    let agent = call.agent;
    let work = act(agent, user_name(body.user.as_ref())?, move |actor| {
        let path = actor.path(&path);
        attributes::get(Path::new(as_os(&path)), &name).map_err(|error| refused(&path, &error))
    });
    let value = call.wait(work).await??;
    call.respond(&XattrValue { value: value.map(Into::into) }).await
}

pub(super) async fn set_xattr(call: &mut Call<'_>) -> Result<(), CallError> {
    let body: SetXattr = call.body()?;
    let path = guest_path(&body.path)?;
    let name = xattr_name(body.name)?;
    let agent = call.agent;
    let work = act(agent, user_name(body.user.as_ref())?, move |actor| {
        let path = actor.path(&path);
        let value = body.value.as_ref().map(|value| value.as_slice());
        attributes::set(Path::new(as_os(&path)), &name, value).map_err(|error| refused(&path, &error))
    });
    call.wait(work).await??;
    call.respond(&()).await
}

fn xattr_name(name: String) -> Result<String, Failure> {
    if name.is_empty() || name.len() > 255 || name.contains('\0') {
        return Err(Invalid::new("name", "1 to 255 bytes without NUL", &name).into());
    }
    Ok(name)
}
