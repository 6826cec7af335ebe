//! What S3 says: queries, errors, XML.

use axum::body::Body;
use axum::http::StatusCode;
use axum::response::Response;

/// Why a request is refused, as S3 says it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Refusal {
    status: StatusCode,
    code: &'static str,
}

impl Refusal {
    pub(super) const BAD_REQUEST: Self = Self { status: StatusCode::BAD_REQUEST, code: "InvalidRequest" };
    pub(super) const NO_BUCKET: Self = Self { status: StatusCode::NOT_FOUND, code: "NoSuchBucket" };
    pub(super) const NO_KEY: Self = Self { status: StatusCode::NOT_FOUND, code: "NoSuchKey" };
    pub(super) const NO_UPLOAD: Self = Self { status: StatusCode::NOT_FOUND, code: "NoSuchUpload" };
    pub(super) const BAD_PART: Self = Self { status: StatusCode::BAD_REQUEST, code: "InvalidPart" };
    pub(super) const SMALL_PART: Self = Self { status: StatusCode::BAD_REQUEST, code: "EntityTooSmall" };
    pub(super) const BAD_RANGE: Self = Self { status: StatusCode::RANGE_NOT_SATISFIABLE, code: "InvalidRange" };
    pub(super) const BAD_DIGEST: Self = Self { status: StatusCode::BAD_REQUEST, code: "XAmzContentSHA256Mismatch" };
    pub(super) const UNSIGNED: Self = Self { status: StatusCode::FORBIDDEN, code: "AccessDenied" };
    pub(super) const WRONG_SIGNATURE: Self = Self { status: StatusCode::FORBIDDEN, code: "SignatureDoesNotMatch" };
    pub(super) const DISK: Self = Self { status: StatusCode::INTERNAL_SERVER_ERROR, code: "InternalError" };

    pub(super) const FULL: Self = Self { status: StatusCode::INSUFFICIENT_STORAGE, code: "XMinioStorageFull" };

    pub(super) fn response(self, head_only: bool) -> Response {
        let body = format!("<?xml version=\"1.0\"?><Error><Code>{}</Code><Message>{}</Message></Error>", self.code, self.code);
        let body = if head_only { Body::empty() } else { Body::from(body) };
        let mut response = Response::new(body);
        *response.status_mut() = self.status;
        response
    }
}

impl From<std::io::Error> for Refusal {
    fn from(error: std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::StorageFull { Self::FULL } else { Self::DISK }
    }
}

/// The part of a URL after its question mark.
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    pub(super) fn of(text: &str) -> Self {
        Self(form_urlencoded::parse(text.as_bytes()).into_owned().collect())
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

pub(super) fn xml(text: &str) -> Response {
    let mut response = Response::new(Body::from(format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>{text}")));
    response.headers_mut().insert("content-type", axum::http::HeaderValue::from_static("application/xml"));
    response
}

pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
