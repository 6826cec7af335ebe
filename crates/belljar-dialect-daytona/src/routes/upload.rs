//! Files that are sent, as they come: nothing is collected, and a sandbox that writes slowly slows the client.

use std::collections::HashMap;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Json, extract::FromRequest};
use belljar_core::{ByteStream, GuestError};
use belljar_http::{Form, FormContent, Problem, QueryOf, base_name, content_type_is};
use belljar_types::{GuestPath, WriteOptions, escape_untrusted};
use futures_util::StreamExt;

use super::inside::Inside;
use super::sandboxes::Answer;
use crate::dto::FileQuery;
use crate::errors::ApiError;

const MOST_FILES: usize = 10_000;

/// The body as the fields of a form.
pub(super) struct Fields(Form);

impl<S: Send + Sync> FromRequest<S> for Fields {
    type Rejection = ApiError;
    async fn from_request(request: Request, _state: &S) -> Result<Self, ApiError> {
        let (parts, body) = request.into_parts();
        form(&parts.headers, body).map(Self).ok_or_else(|| ApiError::bad_request("invalid multipart form"))
    }
}

fn form(headers: &HeaderMap, body: Body) -> Option<Form> {
    Form::new(headers, pieces(body))
}

fn pieces(body: Body) -> FormContent {
    body.into_data_stream().map(|piece| piece.map_err(|error| error.to_string())).boxed()
}

/// `POST /files/upload` and `/files/upload-v2`: to the path of the query, the file of a form or the body as it is.
pub(super) async fn one(inside: Inside, QueryOf(query): QueryOf<FileQuery>, request: Request) -> Answer<Json<serde_json::Value>> {
    let asked = query.path.unwrap_or_default();
    let path = inside.path(&asked)?;
    let (parts, body) = request.into_parts();
    if content_type_is(&parts.headers, "multipart/form-data") {
        let mut form = form(&parts.headers, body).ok_or_else(|| ApiError::bad_request("invalid multipart form"))?;
        let mut written = false;
        while let Some(field) = form.next().await.map_err(|error| spoiled(&error))? {
            if field.name.as_deref() == Some("file") {
                let stored = store(&inside, &path, field.content).await;
                inside.done(stored).await?;
                written = true;
            }
        }
        if !written {
            return Err(ApiError::bad_request("the form has no field `file`"));
        }
    } else {
        let stored = store(&inside, &path, pieces(body)).await;
        inside.done(stored).await?;
    }
    Ok(Json(serde_json::json!({ "name": base_name(&asked), "path": asked, "type": "file" })))
}

fn spoiled(error: &str) -> ApiError {
    ApiError::bad_request(format!("reading part: {error}"))
}

/// `POST /files/bulk-upload`: for each file a field `files[n].path` and, after it, `files[n].file`. What is wrong with one keeps no other from being written.
pub(super) async fn several(inside: Inside, Fields(mut form): Fields) -> Result<Response, Problem> {
    let (mut paths, mut written, mut errors) = (HashMap::new(), Vec::new(), Vec::new());
    loop {
        let field = match form.next().await {
            Ok(Some(field)) => field,
            Ok(None) => break,
            Err(error) => {
                errors.push(format!("reading part: {error}"));
                break;
            }
        };
        let name = field.name.unwrap_or_default();
        if let Some(index) = name.strip_suffix(".path") {
            match text(field.content).await {
                Ok(path) if paths.len() < MOST_FILES && !path.is_empty() => drop(paths.insert(index.to_owned(), path)),
                Ok(_) => errors.push(format!("{}: expected a path, of at most {MOST_FILES}", escape_untrusted(name.as_bytes()))),
                Err(error) => errors.push(format!("{}: {error}", escape_untrusted(name.as_bytes()))),
            }
        } else if let Some(index) = name.strip_suffix(".file") {
            match paths.remove(index) {
                None => errors.push(format!("{}: missing .path metadata", escape_untrusted(name.as_bytes()))),
                Some(path) => match put(&inside, &path, field.content).await {
                    Ok(bytes) => written.push(serde_json::json!({ "path": path, "bytes": bytes })),
                    Err(error) => errors.push(format!("{}: {}", escape_untrusted(path.as_bytes()), error.message())),
                },
            }
        }
    }
    let status = if errors.is_empty() { StatusCode::OK } else { StatusCode::BAD_REQUEST };
    let body =
        if errors.is_empty() { serde_json::json!({ "files": written }) } else { serde_json::json!({ "errors": errors, "files": written }) };
    Ok((status, Json(body)).into_response())
}

async fn put(inside: &Inside, path: &str, content: FormContent) -> Answer<u64> {
    let path = inside.path(path)?;
    let stored = store(inside, &path, content).await;
    inside.done(stored).await
}

async fn store(inside: &Inside, path: &GuestPath, content: FormContent) -> Result<u64, GuestError> {
    let lost = |error: String| GuestError::Lost { operation: "read the upload", source: std::io::Error::other(error) };
    let content: ByteStream = content.map(move |piece| piece.map_err(lost)).boxed();
    let options = WriteOptions { user: inside.user.clone(), make_parents: true, ..WriteOptions::default() };
    Ok(inside.session.write_file(path, &options, content).await?.size)
}

/// A field that is a path.
async fn text(mut content: FormContent) -> Result<String, String> {
    let mut text = Vec::new();
    while let Some(piece) = content.next().await {
        text.extend_from_slice(&piece?);
        if text.len() > GuestPath::MAX_BYTES {
            return Err(format!("a path has fewer than {} bytes", GuestPath::MAX_BYTES));
        }
    }
    String::from_utf8(text).map(|text| text.trim().to_owned()).map_err(|_| "a path is UTF-8".to_owned())
}
