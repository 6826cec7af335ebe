//! The native REST API, version 1, and its OpenAPI document.
