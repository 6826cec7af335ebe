//! Prints the OpenAPI document: `cargo run -p belljar-api --example openapi > docs/reference/openapi.json`.

#![expect(clippy::print_stdout, reason = "printing is what it is for")]

fn main() {
    print!("{}", belljar_api::openapi());
}
